// Writes whose clients leave while etcd does not respond count as in flight only until etcd responds again.

import { once } from 'node:events'
import { request } from 'node:http'
import { after, test } from 'node:test'
import { until } from '../support/cluster.ts'
import { startEtcd } from '../support/etcd.ts'
import { etcdArgs } from '../support/replicas.ts'
import { startServer } from '../support/server.ts'

const etcd = await startEtcd()
const server = await startServer({ args: etcdArgs(etcd) })
after(async () => {
  await server.stop()
  await etcd.close()
})

const headers = { Authorization: `Bearer ${server.adminKey}` }
const teams = '/kubernetes/management/apis/management.platform.sh/v1/teams'

async function writesInFlight(): Promise<number> {
  const text = await (await fetch(`${server.http}/metrics`, { headers })).text()
  return Number(/^apiserver_current_inflight_requests\{request_kind="mutating"\} (\d+)$/m.exec(text)?.[1])
}

test('abandoned writes leave no slot behind', async () => {
  const [member] = etcd.members
  member?.signal('SIGSTOP')
  const writes = Array.from({ length: 20 }, (_, index) => {
    const write = request(server.http + teams, { method: 'POST', headers }).on('error', () => {})
    write.end(JSON.stringify({ metadata: { name: `team-${index}` } }))
    return write
  })
  await Promise.all(writes.map(write => once(write, 'finish')))
  // The server has read the requests before it answers this one.
  for (const _ of writes) await fetch(`${server.http}/livez`)
  for (const write of writes) write.destroy()
  member?.signal('SIGCONT')
  await until('no write in flight', async () => (await writesInFlight()) === 0)
})
