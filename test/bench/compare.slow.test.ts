// The comparison with another server: both get every job, and nothing is left behind, however it ends.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { ConfigMap } from '../../src/vcluster/sync/kinds.ts'
import { startOwnCluster } from '../support/cluster-process.ts'
import { exec } from '../support/exec.ts'
import { type Server, startServer } from '../support/server.ts'

const program = join(import.meta.dirname, '../../bench/compare.ts')
const small = ['--seconds', '0.1', '--rounds', '1', '--objects', '30', '--watchers', '5', '--events', '10']
const names = ['get one', 'page of 500', 'label list', 'durable create', 'patch', 'watch']
const paths = [
  '/apis/management.platform.sh/v1/teams',
  '/apis/rbac.authorization.k8s.io/v1/clusterroles',
  '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings',
]

/** The directory of the comparison's own server: empty after its cleanup. */
const scratch = mkdtempSync(join(tmpdir(), 'platform-compare-test-'))
const env = { ...process.env, TMPDIR: scratch }
after(() => rmSync(scratch, { recursive: true, force: true }))

suite('against a second server of ours', () => {
  let other: Server
  let first: unknown
  before(async () => {
    other = await startServer({ storage: 'memory' })
    await other.request('POST', paths[0] as string, { body: { metadata: { name: 'theirs-before' } } })
    first = await everything(other)
  })
  after(() => other.stop())

  test('both servers get every job, and created objects are deleted afterwards', async () => {
    const { code, stdout, stderr } = await run(['--kubeconfig', other.kubeconfig, '--pids', `${process.pid}`, ...small])
    assert.equal(code, 0, stderr)
    assert.match(stdout, /^get one +ours +\d+\/s +\d+ µs +theirs +\d+\/s +\d+ µs/m)
    assert.match(stdout, /^ours: Teams; theirs: Teams of https:/)
    drivesBoth(stdout)
    const { metadata } = (await other.request('GET', paths[0] as string)).body
    assert.ok(Number(metadata.resourceVersion) > 60, 'the other server was written to')
    assert.deepEqual(await everything(other), first)
    assert.deepEqual(readdirSync(scratch), [])
  })

  test('Ctrl-C during the run deletes created objects, too', async () => {
    const long = ['--kubeconfig', other.kubeconfig, ...small, '--seconds', '600']
    const child = spawn(process.execPath, [program, ...long], { env, stdio: ['ignore', 'pipe', 'pipe'] })
    const ended = once(child, 'exit')
    let printed = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', chunk => (printed += chunk))
    const under = async () => (await other.request('GET', paths[0] as string)).body.items.length > 20
    for (const end = Date.now() + 30_000; !(await under()); await pause(20)) {
      assert.equal(child.exitCode, null, printed)
      assert.ok(Date.now() < end, `it does not begin:\n${printed}`)
    }
    child.kill('SIGINT')
    assert.deepEqual(await ended, [130, null], printed)
    assert.match(printed, /stopping: removing the created objects first/)
    assert.deepEqual(await everything(other), first)
    assert.deepEqual(readdirSync(scratch), [])
  })
})

test('a server with ConfigMaps is compared with them, in a namespace of the run', async () => {
  const cluster = await startOwnCluster()
  try {
    const { code, stdout, stderr } = await run(['--kubeconfig', cluster.kubeconfig, ...small])
    assert.equal(code, 0, stderr)
    assert.match(stdout, /^ours: Teams; theirs: ConfigMaps of http:/)
    drivesBoth(stdout)
    assert.deepEqual((await cluster.resources.list(ConfigMap, {})).items, [])
  } finally {
    await cluster.close()
  }
})

test('problems of flags, kubeconfig or server are reported immediately, and nothing is started', async () => {
  const { code, stderr } = await run(['--rounds', '0', '--seconds', 'x', '--pids', '1,x'])
  assert.equal(code, 1)
  assert.match(
    stderr,
    /--seconds must be a number above 0\n--rounds must be a whole number above 0\n--pids must be process ids.*\n--kubeconfig is missing.*\nnpm run/,
  )
  const nowhere = join(scratch, 'kubeconfig')
  const cluster = { server: 'https://127.0.0.1:1' }
  const context = { cluster: 'c' }
  const config = { clusters: [{ name: 'c', cluster }], contexts: [{ name: 'c', context }], 'current-context': 'c' }
  writeFileSync(nowhere, JSON.stringify(config))
  assert.match((await run(['--kubeconfig', nowhere])).stderr, /^https:\/\/127.0.0.1:1: connection refused\n$/)
  assert.match((await run(['--kubeconfig', nowhere, '--context', 'd'])).stderr, /unknown context "d"/)
  rmSync(nowhere)
  assert.deepEqual(readdirSync(scratch), [])
})

const run = (args: readonly string[]) => exec(process.execPath, [program, ...args], { env, timeout: 120_000 })

function drivesBoth(stdout: string): void {
  const rates = [...stdout.matchAll(/^(.{16}) ours +(\d+)\/s.*? theirs +(\d+)\/s.*? ratio [\d.]+$/gm)]
  assert.deepEqual(
    rates.map(([, name]) => name?.trim()),
    names,
    stdout,
  )
  for (const [line, , ours, theirs] of rates) assert.ok(Number(ours) > 0 && Number(theirs) > 0, line)
  assert.doesNotMatch(stdout, /errors/)
}

/** The names of all that a run could leave. */
const everything = (server: Server): Promise<unknown> =>
  Promise.all(
    paths.map(async path => {
      const { items } = (await server.request('GET', path)).body
      return items.map((item: { metadata: { name: string } }) => item.metadata.name)
    }),
  )
