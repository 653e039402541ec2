// Replicas on etcd against one server on SQLite: CPU of reads, watches and creates, gaps when something is killed, and the cold start.

import { once } from 'node:events'
import { cpSync, mkdtempSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type EtcdCluster, startEtcd } from '../test/support/etcd.ts'
import { etcdArgs } from '../test/support/replicas.ts'
import { perEvent, perRequest } from './costs.ts'
import { type Figure, type Measured, median } from './measurement.ts'
import { remove, type Server, startServer } from './processes.ts'
import { fill } from './scale.ts'

const teams = '/kubernetes/management/apis/management.platform.sh/v1/teams'
const rounds = 3
const many = Number(process.env['BENCH_OBJECTS'] ?? 100_000)

/** Another server of the same installation: it needs the master key, and accepts the same access key. */
async function startReplica(first: Server, args: readonly string[]): Promise<Server> {
  const directory = mkdtempSync(join(tmpdir(), 'platform-bench-'))
  for (const name of ['master.key', 'admin.key']) cpSync(join(first.directory, name), join(directory, name))
  return startServer(directory, args)
}

type Costs = {
  readonly get: number
  readonly alone: number
  readonly page: number
  readonly create: number
  readonly event: number
}

async function costsOf(server: Server, seconds: number, round: number): Promise<Costs> {
  const get = await perRequest(server, { path: `${teams}/team-%d` }, seconds)
  const alone = await perRequest(server, { path: `${teams}/team-%d`, connections: 1 }, seconds)
  const page = await perRequest(server, { path: `${teams}?limit=500` }, seconds)
  const body = `{"metadata":{"name":"new-${round}-%d"},"spec":{"description":"${'x'.repeat(280)}"}}`
  const create = await perRequest(server, { method: 'POST', path: teams, body }, seconds)
  return { get, alone, page, create, event: await perEvent(server, round, { rate: 200 }) }
}

/** The longest time between two successes of a client that asks the servers in turn until one succeeds. */
async function gapOf(
  servers: readonly Server[],
  method: 'GET' | 'POST',
  fault: () => Promise<unknown>,
): Promise<number> {
  let [last, longest, count, turn] = [performance.now(), 0, 0, 0]
  let isOver = false
  const agent = new Agent({ keepAlive: true, maxSockets: 8, rejectUnauthorized: false })
  const ask = async () => {
    const server = servers[turn++ % servers.length] as Server
    const headers = { Authorization: `Bearer ${server.key}`, 'Content-Type': 'application/json' }
    const sent = request(server.url + teams + (method === 'GET' ? '?limit=1' : ''), {
      method,
      agent,
      headers,
      timeout: 2000,
    })
    sent.on('timeout', () => sent.destroy(new Error('timeout')))
    const body = method === 'GET' ? undefined : JSON.stringify({ metadata: { generateName: 'gap-' } })
    try {
      const [response] = await once(sent.end(body), 'response')
      await once(response.resume(), 'end')
      if (response.statusCode >= 300) return
      const now = performance.now()
      longest = Math.max(longest, now - last)
      last = now
      count++
    } catch {}
  }
  const asking = (async () => {
    while (!isOver) await ask()
  })()
  while (count < 50) await new Promise(resolve => setTimeout(resolve, 20))
  longest = 0
  await fault()
  const after = count
  const end = performance.now() + 15_000
  while (performance.now() < end || count === after) await new Promise(resolve => setTimeout(resolve, 100))
  isOver = true
  await asking
  agent.destroy()
  return longest / 1000
}

async function gaps(): Promise<{ readonly write: number; readonly read: number }> {
  const etcd = await startEtcd({ members: 3 })
  const args = etcdArgs(etcd)
  const first = await startServer(undefined, args)
  const servers = [first, await startReplica(first, args), await startReplica(first, args)]
  const write: number[] = []
  for (const member of etcd.members) {
    write.push(await gapOf(servers, 'POST', () => member.kill()))
    await member.start()
  }
  const read = await gapOf(servers, 'GET', async () => process.kill(servers[1]?.pid ?? 0, 'SIGKILL'))
  await end(servers, etcd)
  return { write: Math.max(...write), read }
}

async function end(servers: readonly Server[], etcd: EtcdCluster): Promise<void> {
  await Promise.all(servers.map(server => server.stop()))
  await etcd.close()
  for (const { directory } of servers) remove(directory)
}

async function coldStart(): Promise<number> {
  const etcd = await startEtcd()
  const args = etcdArgs(etcd)
  const server = await startServer(undefined, args)
  await fill(server, 0, many)
  await server.stop()
  const started = performance.now()
  const again = await startServer(server.directory, args)
  const seconds = (performance.now() - started) / 1000
  await end([again], etcd)
  return seconds
}

export async function measureEtcd(seconds: number): Promise<Measured> {
  const etcd = await startEtcd()
  const [shared, single] = [await startServer(undefined, etcdArgs(etcd)), await startServer()]
  for (const server of [shared, single]) await fill(server, 0, 1000)
  const costs: { shared: Costs; single: Costs }[] = []
  for (let round = 0; round < rounds; round++)
    costs.push({ shared: await costsOf(shared, seconds, round), single: await costsOf(single, seconds, round) })
  await single.stop()
  remove(single.directory)
  await end([shared], etcd)
  const figureOf = (what: keyof Costs, name: string, wanted?: number): Figure => {
    const [mine, theirs] = [median(costs.map(one => one.shared[what])), median(costs.map(one => one.single[what]))]
    return {
      name: `etcd: ${name}`,
      value: median(costs.map(one => one.single[what] / one.shared[what])),
      unit: 'of SQLite',
      bare: { name: 'SQLite', value: 1 },
      ...(wanted === undefined ? {} : { wanted }),
      direction: 'at-least',
      note: `${mine.toFixed(mine < 10 ? 2 : 0)} µs of CPU of the replica against ${theirs.toFixed(theirs < 10 ? 2 : 0)} µs`,
    }
  }
  const { write, read: reads } = await gaps()
  const cold = await coldStart()
  const figures: Figure[] = [
    figureOf('get', 'get', 0.85),
    figureOf('page', 'page of 500', 0.85),
    figureOf('alone', 'get, one client'),
    figureOf('event', 'watch event', 0.85),
    figureOf('create', 'durable create'),
    {
      name: 'etcd: gap of writes',
      value: write,
      unit: 's',
      wanted: 5,
      direction: 'at-most',
      note: 'one of three members killed, the worst of three',
    },
    {
      name: 'etcd: gap of reads',
      value: reads,
      unit: 's',
      wanted: 1,
      direction: 'at-most',
      note: 'one of three replicas killed',
    },
    { name: 'etcd: cold start', value: cold, unit: 's', wanted: 6, direction: 'at-most', note: `${many} objects` },
  ]
  const text = figures.map(
    ({ name, value, unit, note = '' }) => `${name.padEnd(22)} ${value.toFixed(2)} ${unit}; ${note}`,
  )
  return { text: text.join('\n'), figures }
}
