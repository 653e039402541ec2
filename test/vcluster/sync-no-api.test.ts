// The syncer at a server that is no Kubernetes API server: it says so at once, and which of the two it is.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { until } from '../support/cluster.ts'
import { killProgram, startOwnCluster, startProgram } from '../support/cluster-process.ts'
import { exec } from '../support/exec.ts'
import { kubeconfigOf } from '../support/kubeconfig.ts'
import { startServer } from '../support/server.ts'

const directory = mkdtempSync(join(tmpdir(), 'platform-sync-'))
const program = join(import.meta.dirname, '../../bin/platform.js')
const [cluster, service] = await Promise.all([startOwnCluster(), startServer({ storage: 'memory' })])
const web = createServer((_, response) => response.writeHead(404).end('<h1>not found</h1>'))
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
const once = (virtual: string, host: string, how = '--once') =>
  exec(process.execPath, words(virtual, host, how, '--timeout', '10m'), { timeout: 60_000 })

test('--once and --dry-run end at once with code 1 where a side has no endpoints, and name the side, the server and what it must be', async () => {
  const own = `${service.https}/kubernetes/management`
  const cases: readonly (readonly [string, string, string])[] = [
    [service.kubeconfig, cluster.kubeconfig, `the virtual cluster at ${own} has no `],
    [cluster.kubeconfig, service.kubeconfig, `the host at ${own} has no endpoints (v1): `],
    [cluster.kubeconfig, webKubeconfig, `the host at ${webServer} has no endpoints (v1): `],
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

test('one that goes on tries again, for it may be a server that is being set up, and the log says which has no such API', async () => {
  const { child, printed } = await startProgram(
    words(cluster.kubeconfig, webKubeconfig),
    /^platform syncs endpoints of vc/m,
  )
  try {
    await until(
      'it is said twice',
      async () => (printed().match(/failed; trying again: the host at \S+ has no endpoints \(v1\)/g) ?? []).length > 1,
    )
  } finally {
    await killProgram(child)
  }
})
