// Starting real Kubernetes, tested without its binaries: started as documented, in order, killed, restarted on the same data, with the syncer's suites.

import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Endpoints } from '../../src/vcluster/sync/kinds.ts'
import { endpoints, people, reachWith } from '../support/cluster.ts'
import { exec } from '../support/exec.ts'
import { startKube } from '../support/kube-cluster.ts'

const directory = mkdtempSync(join(tmpdir(), 'platform-fake-kube-'))
after(() => rmSync(directory, { recursive: true }))
const program = fileURLToPath(new URL('../support/fake-kube.ts', import.meta.url))

function binary(role: string): string {
  const file = join(directory, role)
  writeFileSync(file, `#!/bin/sh\nexec "${process.execPath}" "${program}" ${role} "$@"\n`)
  chmodSync(file, 0o755)
  return file
}
const binaries = { apiserver: binary('apiserver'), etcd: binary('etcd') }
const at = { namespace: 'team', name: 'web' }

const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

test('etcd starts first, then the API server; after a kill both come back with their data and address', async () => {
  const kube = await startKube(binaries)
  const { resources, close } = reachWith(kube.access)
  try {
    const web = await people({ resources }).create(endpoints('web', {}, 'team'))
    const before = kube.pids()
    assert.equal(before.length, 2)
    await kube.kill()
    assert.deepEqual(before.map(isAlive), [false, false])
    await assert.rejects(resources.get(Endpoints, at), /cannot reach/)
    await kube.start()
    assert.equal(kube.pids().length, 2)
    assert.deepEqual(await people({ resources }).get(at), web)
    assert.match(readFileSync(kube.kubeconfig, 'utf8'), new RegExp(`"server":"${kube.access.server}"`))
    const after = kube.pids()
    await kube.close()
    assert.deepEqual(after.map(isAlive), [false, false])
    assert.ok(!existsSync(dirname(kube.kubeconfig)), 'nothing is left of it')
  } finally {
    close()
    await kube.close()
  }
})

for (const [what, file, why] of [
  ['ends', '/bin/false', /\/bin\/false ended with 1 before it was ready/],
  ['is none', join(directory, 'nothing'), /nothing could not be started: .*ENOENT/],
] as const)
  test(`a binary that ${what} is reported immediately, and the other one is stopped`, async () => {
    await assert.rejects(startKube({ ...binaries, apiserver: file }), why)
    await assert.rejects(startKube({ ...binaries, etcd: file }), why)
  })

test('a binary that exits is reported with its output', async () => {
  const file = join(directory, 'complaining')
  writeFileSync(file, '#!/bin/sh\necho "no such flag" >&2\nexit 3\n')
  chmodSync(file, 0o755)
  await assert.rejects(
    startKube({ ...binaries, apiserver: file }),
    /ended with 3 before it was ready; [\s\S]*no such flag/,
  )
})

/** Of each, which part runs here; all of it does where there is a real one. */
const suites = [
  { file: 'vcluster/sync-restarts.slow.test.ts', only: '^(create|update|delete)$', tests: 3 },
  { file: 'e2e/sync.test.ts', only: '--dry-run prints', tests: 1 },
  { file: 'vcluster/reverse-patches.test.ts', only: 'runs once for an edit of its own', tests: 1 },
  { file: 'vcluster/sync-references.test.ts', only: 'resolves when the target appears', tests: 1 },
  {
    file: 'vcluster/sync-slices.test.ts',
    only: 'get the name|follow changes|of the slice controller|another address type',
    tests: 4,
  },
  { file: 'vcluster/sync-imports.test.ts', only: 'loses to an object of the tenant', tests: 1 },
  { file: 'e2e/sync-chaos.slow.test.ts', tests: 1, starts: 3 },
]

describe('if KUBE_APISERVER and ETCD name binaries, the same suite runs against them', { concurrency: 2 }, () => {
  for (const { file, only, tests, starts = 2 } of suites)
    test(file, { timeout: 400_000 }, async () => {
      const log = join(directory, `${file.replaceAll('/', '-')}.log`)
      const env = {
        ...{ PATH: process.env['PATH'], KUBE_APISERVER: binaries.apiserver, ETCD: binaries.etcd, FAKE_KUBE_LOG: log },
        ...{ SYNC_CHAOS_SECONDS: '1', SYNC_CHAOS_KILLS: '3' },
      }
      const args = ['--test', ...(only ? [`--test-name-pattern=${only}`] : []), join(import.meta.dirname, '..', file)]
      const { code, stdout, stderr } = await exec(process.execPath, args, { env, timeout: 390_000 })
      assert.equal(code, 0, stdout + stderr)
      assert.ok(Number(/^ℹ pass (\d+)$/m.exec(stdout)?.[1]) >= tests, stdout)
      assert.match(stdout, /^ℹ skipped 0$/m)
      const started = readFileSync(log, 'utf8')
        .split('\n')
        .filter(line => line === 'apiserver')
      assert.ok(started.length >= starts, `${started.length} API servers were started`)
    })
})
