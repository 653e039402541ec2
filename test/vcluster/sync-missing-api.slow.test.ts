// The syncer with a server that is not a Kubernetes API server, or behind a proxy that responds instead: it reports which side.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { ApiError } from '../../src/api/errors.ts'
import type { Resources } from '../../src/api/resources.ts'
import { openHostDiscovery } from '../../src/vcluster/sync/host-discovery.ts'
import { openReferenceSync } from '../../src/vcluster/sync/reference-sync.ts'
import { until } from '../support/cluster.ts'
import { killProgram, startOwnCluster, startProgram } from '../support/cluster-process.ts'
import { exec } from '../support/exec.ts'
import { kubeconfigOf } from '../support/kubeconfig.ts'
import { startServer } from '../support/server.ts'

const directory = mkdtempSync(join(tmpdir(), 'platform-sync-'))
const program = join(import.meta.dirname, '../../bin/platform.js')
const [cluster, service] = await Promise.all([startOwnCluster(), startServer({ storage: 'memory' })])
/** Something before the cluster: so many answers are its own. */
let answersLeft = 0
const web = createServer((asked, response) => {
  if (answersLeft-- > 0) return response.writeHead(404).end('<h1>not found</h1>')
  const { url, method, headers } = asked
  const passed = request(`${cluster.server}${url}`, { method, headers }, answer => {
    response.writeHead(answer.statusCode ?? 502, answer.headers)
    answer.pipe(response)
  })
  passed.on('error', () => response.destroy())
  response.on('close', () => passed.destroy())
  return asked.pipe(passed)
})
await new Promise<void>(resolve => web.listen(0, '127.0.0.1', resolve))
const webServer = `http://127.0.0.1:${(web.address() as AddressInfo).port}`
const webKubeconfig = join(directory, 'web')
writeFileSync(webKubeconfig, kubeconfigOf(webServer))
const config = join(directory, 'vcluster.yaml')
writeFileSync(config, '')
after(async () => {
  web.closeAllConnections()
  web.close()
  await Promise.all([cluster.close(), service.stop()])
  rmSync(directory, { recursive: true })
})

const words = (virtual: string, host: string, ...more: string[]) => [
  ...[program, 'vcluster', 'sync', '-f', config, '--name', 'vc', '-n', 'team'],
  ...['--virtual-kubeconfig', virtual, '--host-kubeconfig', host, ...more],
]
// So long that a test which waited for it would be broken off.
const once = (virtual: string, host: string, how = '--once', timeout = '10m') =>
  exec(process.execPath, words(virtual, host, how, '--timeout', timeout), { timeout: 60_000 })

test('--once and --dry-run exit with 1 if a side does not serve endpoints, and name the side, the server and the requirement', async () => {
  const own = `${service.https}/kubernetes/management`
  const cases: readonly (readonly [string, string, string])[] = [
    [service.kubeconfig, cluster.kubeconfig, `the virtual cluster at ${own} has no `],
    [cluster.kubeconfig, service.kubeconfig, `the host at ${own} has no endpoints (v1): `],
  ]
  for (const [virtual, host, beginning] of cases)
    for (const how of ['--once', '--dry-run']) {
      const { code, stdout, stderr } = await once(virtual, host, how)
      assert.equal(code, 1, stderr)
      assert.equal(stdout, '')
      const said = stderr.split('\n').filter(line => line.startsWith('platform: '))
      assert.ok(said[0]?.startsWith(`platform: ${beginning}`), stderr)
      const flag = beginning.includes('virtual') ? '--virtual-kubeconfig' : '--host-kubeconfig'
      assert.match(said[0] as string, new RegExp(`it must be a Kubernetes API server \\(${flag}\\)$`))
      assert.equal(said.length, 1, stderr)
    }
})

test('a 404 that does not come from a Kubernetes API server is an outage: --once retries until it is over or the time is up', async () => {
  for (const [virtual, host] of [
    [cluster.kubeconfig, webKubeconfig],
    [webKubeconfig, cluster.kubeconfig],
  ] as const) {
    answersLeft = 6
    const over = await once(virtual, host)
    assert.equal(over.code, 0, over.stderr)
    assert.ok(answersLeft < 0)
    assert.match(over.stderr, /"err":"response 404 without a Status: it may come from a proxy/)
  }
  answersLeft = Number.POSITIVE_INFINITY
  const { code, stderr } = await once(cluster.kubeconfig, webKubeconfig, '--once', '2s')
  assert.equal(code, 1, stderr)
  assert.match(stderr, /"err":"response 404 without a Status/)
  assert.match(stderr, /^platform: timed out after 2s: response 404 without a Status/m)
  assert.doesNotMatch(stderr, /has no endpoints/)
})

test('such a response does not mean that an object is deleted: nothing is removed', async () => {
  const away = new ApiError(404, '', 'response 404 without a Status')
  const refused = { get: () => Promise.reject(away) } as unknown as Resources
  const lookup = async () => ['10.0.0.1']
  const discoverHost = openHostDiscovery({
    hostServer: 'https://api.example.org',
    lookup,
    name: 'vc',
    namespace: 'team',
  })
  await assert.rejects(discoverHost(refused), away)
  const vcluster = { name: 'vc', namespace: 'team', config: {} }
  const ours = { metadata: { name: 'db', namespace: 'team', annotations: {} } }
  const host = { get: async () => ({ object: ours }) } as unknown as Resources
  const pushes = { ConfigMap: true, Secret: true }
  const { sync: bring } = openReferenceSync({
    virtual: refused,
    host,
    vcluster,
    owner: undefined,
    pushes,
    importAllow: [],
  })
  await assert.rejects(
    bring({
      ...{ apiVersion: 'v1', kind: 'Secret', namespace: 'default', name: 'db' },
      ...{ hostNamespace: 'team', hostName: 'db-x-default-x-vc', path: '' },
    }),
    away,
  )
})

test('without --once the syncer retries, because the server may still be starting, and the log names the side', async () => {
  const { child, printed } = await startProgram(
    words(cluster.kubeconfig, service.kubeconfig),
    /^platform: syncing endpoints of vc/m,
  )
  try {
    await until(
      'it is said twice',
      async () => (printed().match(/"err":"the host at \S+ has no endpoints \(v1\)/g) ?? []).length > 1,
    )
  } finally {
    await killProgram(child)
  }
})
