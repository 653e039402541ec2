// 200 watchers × 200 events, five times: events per second, and their delay.

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { Agent, request } from 'node:https'
import { join } from 'node:path'
import { type Measured, median } from './measurement.ts'
import { remove, type Server, startServer } from './processes.ts'
import type { Report, Task } from './watch-reader.ts'

const teams = '/kubernetes/management/apis/management.platform.sh/v1/teams'
const watchers = 200
const warmUp = 100
const events = 200
const writers = 32
const runs = 5

const now = () => Number(process.hrtime.bigint()) / 1e6

/** When each create was sent, and when its response arrived. */
type Written = Map<string, { readonly sent: number; readonly answered: number }>

export async function measureWatch(): Promise<Measured> {
  const server = await startServer()
  const agent = new Agent({ keepAlive: true, maxSockets: writers, rejectUnauthorized: false })
  // Warms up, so that neither compilation nor opening the writers' connections is measured.
  await write(server, agent, 'warm', 2000)
  const results: Result[] = []
  for (let run = 0; run < runs; run++) results.push(await runOnce(server, agent, run))
  agent.destroy()
  await server.stop()
  remove(server.directory)
  return show(results)
}

/** New watchers and new objects. */
async function runOnce(server: Server, agent: Agent, run: number): Promise<Result> {
  const reader = fork(join(import.meta.dirname, 'watch-reader.ts'))
  const url = `${server.url}${teams}?watch=1&resourceVersion=${await newest(server)}`
  const task: Task = { url, key: server.key, watchers, warmUp, events }
  reader.send(task)
  await once(reader, 'message')
  const isWarm = once(reader, 'message')
  await write(server, agent, `ready-${run}`, warmUp)
  await isWarm
  const reported = once(reader, 'message') as Promise<[Report]>
  const written = await write(server, agent, `bench-${run}`, events)
  const [report] = await reported
  return resultOf(written, report)
}

type Result = { readonly rate: number; readonly p99: number }

function resultOf(written: Written, report: Report): Result {
  const delays: number[] = []
  let last = 0
  for (const [name, times] of Object.entries(report))
    for (const time of times) {
      // An event may arrive before the response to its own write: that counts as no delay.
      delays.push(Math.max(0, time - (written.get(name)?.answered ?? 0)))
      last = Math.max(last, time)
    }
  const first = Math.min(...[...written.values()].map(({ sent }) => sent))
  const p99 = delays.sort((one, other) => one - other)[Math.floor(delays.length * 0.99)] as number
  return { rate: Math.round((watchers * events) / ((last - first) / 1000)), p99 }
}

function show(results: readonly Result[]): Measured {
  const rate = median(results.map(one => one.rate))
  const p99 = median(results.map(one => one.p99))
  const note = `median of ${runs} runs`
  const text = `watch            ${watchers} watchers × ${events} events: ${rate} events/s (wanted 100000), p99 ${p99.toFixed(1)} ms after the write was answered (wanted 40), reader included, ${note}`
  return {
    text,
    figures: [
      { name: 'watch: events', value: rate, unit: 'events/s', wanted: 100_000, direction: 'at-least', note },
      { name: 'watch: delay', value: p99, unit: 'ms, p99', wanted: 40, direction: 'at-most', note },
    ],
  }
}

async function write(server: Server, agent: Agent, prefix: string, count: number): Promise<Written> {
  const written: Written = new Map()
  const headers = { Authorization: `Bearer ${server.key}`, 'Content-Type': 'application/json' }
  const create = async (name: string) => {
    const sent = now()
    const body = JSON.stringify({ metadata: { name }, spec: { description: 'x'.repeat(500) } })
    const [response] = await once(request(server.url + teams, { method: 'POST', agent, headers }).end(body), 'response')
    await once(response.resume(), 'end')
    written.set(name, { sent, answered: now() })
  }
  let next = 0
  const lane = async () => {
    while (next < count) await create(`${prefix}-${next++}`)
  }
  await Promise.all(Array.from({ length: writers }, lane))
  return written
}

async function newest(server: Server): Promise<string> {
  const headers = { Authorization: `Bearer ${server.key}` }
  const sent = request(`${server.url}${teams}?limit=1`, { headers, rejectUnauthorized: false }).end()
  const [response] = await once(sent, 'response')
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) text += chunk
  return JSON.parse(text).metadata.resourceVersion
}
