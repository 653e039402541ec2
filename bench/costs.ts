// The CPU of a server for one request, or for the delivery of one event. etcd.ts and curves.ts compare them.

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { Agent, request } from 'node:https'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { driveMeasured, type Load } from './load.ts'
import { cpuOf, type Server } from './processes.ts'
import type { Task } from './watch-reader.ts'

const teams = '/kubernetes/management/apis/management.platform.sh/v1/teams'

/** Microseconds of CPU of the server for each request. */
export async function perRequest(server: Server, load: Partial<Load>, seconds: number): Promise<number> {
  const { cpu, errors } = await driveMeasured(server.pid, {
    url: server.url,
    key: server.key,
    connections: 32,
    seconds,
    ...load,
  })
  if (errors > 0) throw new Error(`${errors} requests failed: ${load.method ?? 'GET'} ${load.path}`)
  return cpu
}

/**
 * The cost of delivering an event to one of many watchers: the CPU of creates with watchers, less that without. A `rate` of creates
 * per second makes servers comparable: the faster one would send more events in one write.
 */
export async function perEvent(
  server: Server,
  round: number,
  { watchers = 200, rate }: { readonly watchers?: number; readonly rate?: number } = {},
): Promise<number> {
  const [warmUp, events] = [100, 400]
  const alone = await creating(server, `alone-${round}`, events, rate)
  const reader = fork(join(import.meta.dirname, 'watch-reader.ts'))
  const { metadata } = await read(server, `${teams}?limit=1`)
  const url = `${server.url}${teams}?watch=1&resourceVersion=${metadata.resourceVersion}`
  reader.send({ url, key: server.key, watchers, warmUp, events } satisfies Task)
  await once(reader, 'message')
  const isWarm = once(reader, 'message')
  await creating(server, `warm-${round}`, warmUp)
  await isWarm
  const before = cpuOf(server.pid)
  const reported = once(reader, 'message')
  await creating(server, `bench-${round}`, events, rate)
  await reported
  return ((cpuOf(server.pid) - before) * 1000 - alone) / (watchers * events)
}

/** Microseconds of CPU. Without a rate, as fast as the server answers. */
async function creating(
  server: Server,
  prefix: string,
  count: number,
  rate = Number.POSITIVE_INFINITY,
): Promise<number> {
  const started = performance.now()
  const before = cpuOf(server.pid)
  const agent = new Agent({ keepAlive: true, maxSockets: 32, rejectUnauthorized: false })
  const headers = { Authorization: `Bearer ${server.key}`, 'Content-Type': 'application/json' }
  let next = 0
  const lane = async () => {
    while (next < count) {
      const index = next++
      const wait = started + (index * 1000) / rate - performance.now()
      if (wait > 0) await pause(wait)
      const body = JSON.stringify({ metadata: { name: `${prefix}-${index}` }, spec: { description: 'x'.repeat(500) } })
      const [response] = await once(
        request(server.url + teams, { method: 'POST', agent, headers }).end(body),
        'response',
      )
      await once(response.resume(), 'end')
    }
  }
  await Promise.all(Array.from({ length: 32 }, lane))
  agent.destroy()
  return (cpuOf(server.pid) - before) * 1000
}

async function read(
  server: Server,
  path: string,
): Promise<{ readonly metadata: { readonly resourceVersion: string } }> {
  const headers = { Authorization: `Bearer ${server.key}` }
  const [response] = await once(request(server.url + path, { headers, rejectUnauthorized: false }).end(), 'response')
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) text += chunk
  return JSON.parse(text)
}
