// Disaster recovery with etcd's own tools: a snapshot that is restored with a higher revision, as docs/HIGH-AVAILABILITY.md says.

import assert from 'node:assert/strict'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { type EtcdMember, startEtcd } from '../support/etcd.ts'
import { exec } from '../support/exec.ts'
import { freePort } from '../support/ports.ts'
import { startServer } from '../support/server.ts'
import { eventually } from '../support/wire.ts'

const teams = '/apis/management.platform.sh/v1/teams'

test('after a restore with --bump-revision and --mark-compacted, versions grow and old watches end', async t => {
  const scratch = mkdtempSync(join(tmpdir(), 'platform-snapshot-'))
  t.after(() => rmSync(scratch, { recursive: true, force: true }))
  const etcd = await startEtcd()
  t.after(() => etcd.close())
  const [member] = etcd.members as readonly [EtcdMember]
  const server = await startServer({ args: ['--storage', 'etcd', '--etcd-endpoints', member.endpoint] })
  t.after(() => server.stop())
  const post = async (name: string) =>
    Number((await server.request('POST', teams, { body: { metadata: { name } } })).body.metadata.resourceVersion)
  const snapshot = join(scratch, 'snapshot.db')
  await post('kept')
  await server.restart(async () => {
    await stop(member)
    cpSync(join(member.directory, 'member/snap/db'), snapshot)
    await member.start()
  })
  const lost = await post('lost')
  await server.restart(async () => {
    await stop(member)
    rmSync(member.directory, { recursive: true })
    const peer = `http://127.0.0.1:${await freePort()}`
    const words = `snapshot restore ${snapshot} --data-dir ${member.directory} --name ${member.name} --skip-hash-check
      --initial-cluster ${member.name}=${peer} --initial-advertise-peer-urls ${peer}
      --bump-revision 1000000000 --mark-compacted`
    const { code, stderr } = await exec(etcd.binaries.etcdutl, words.split(/\s+/))
    assert.equal(code, 0, stderr)
    await member.start()
  })
  const { body: list } = await server.request('GET', teams)
  assert.deepEqual(
    list.items.map((item: { metadata: { name: string } }) => item.metadata.name),
    ['kept'],
  )
  assert.ok(Number(list.metadata.resourceVersion) > lost)
  const { text } = await server.request('GET', `${teams}?watch=1&timeoutSeconds=5&resourceVersion=${lost}`)
  assert.match(text, /"code":410/)
  assert.ok((await post('new')) > Number(list.metadata.resourceVersion))
})

/** Lets the member write everything to its database. */
async function stop(member: EtcdMember): Promise<void> {
  const pid = member.pid()
  process.kill(pid, 'SIGTERM')
  await eventually('the member has ended', async () => !isRunning(pid))
  await member.kill()
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
