// 200 watchers × 200 events: how many arrive a second, and how late.

import { Agent, request } from 'node:https'
import { remove, startServer } from './processes.ts'

const teams = '/kubernetes/management/apis/management.platform.sh/v1/teams'
const watchers = 200
const events = 200

export async function measureWatch(): Promise<string> {
  const server = await startServer()
  const headers = { Authorization: `Bearer ${server.key}` }
  const sent = new Map<string, number>()
  const delays: number[] = []
  let arrived = 0
  let first = Number.POSITIVE_INFINITY
  let last = 0
  let finish: () => void = () => {}
  const all = new Promise<void>(resolve => {
    finish = resolve
  })
  const count = (name: string) => {
    const now = performance.now()
    first = Math.min(first, sent.get(name) ?? now)
    last = now
    delays.push(now - (sent.get(name) ?? now))
    if (++arrived === watchers * events) finish()
  }
  const open = () =>
    new Promise<() => void>((resolve, reject) => {
      const watching = request(
        `${server.url}${teams}?watch=1&resourceVersion=1`,
        { headers, rejectUnauthorized: false, agent: false },
        response => {
          let rest = ''
          response.setEncoding('latin1')
          response.on('data', (chunk: string) => {
            const lines = (rest + chunk).split('\n')
            rest = lines.pop() ?? ''
            for (const line of lines) count(/"name":"(bench-\d+)"/.exec(line)?.[1] ?? '')
          })
          response.on('error', () => {})
          resolve(() => watching.destroy())
        },
      )
      watching.on('error', reject).end()
    })
  const closers = await Promise.all(Array.from({ length: watchers }, open))
  const agent = new Agent({ keepAlive: true, maxSockets: 16, rejectUnauthorized: false })
  const create = (name: string) =>
    new Promise<void>((resolve, reject) => {
      sent.set(name, performance.now())
      const body = JSON.stringify({ metadata: { name }, spec: { description: 'x'.repeat(500) } })
      request(
        server.url + teams,
        { method: 'POST', agent, headers: { ...headers, 'Content-Type': 'application/json' } },
        response => response.resume().on('end', resolve),
      )
        .on('error', reject)
        .end(body)
    })
  await Promise.all(Array.from({ length: events }, (_, index) => create(`bench-${index}`)))
  await all
  for (const close of closers) close()
  agent.destroy()
  await server.stop()
  remove(server.directory)
  const p99 = delays.sort((one, other) => one - other)[Math.floor(delays.length * 0.99)] as number
  const rate = Math.round((watchers * events) / ((last - first) / 1000))
  return `watch            ${watchers} watchers × ${events} events: ${rate} events/s (wanted 100000), p99 ${p99.toFixed(1)} ms (wanted < 50), reader included`
}
