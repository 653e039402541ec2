// Two thousand mixed requests per second over TLS for minutes; then ten times as many writers as the server can handle, and its recovery.

import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { startServer } from '../support/server.ts'
import { inLanes, type Latencies, openLatencies } from './latencies.ts'
import { type LeanClient, type LeanOptions, openLeanClient } from './lean-client.ts'
import { teams, teamText } from './observed-teams.ts'
import { vitalsOf } from './process-health.ts'
import { diceOf } from './seeded-random.ts'

const names = 1000
/** After twice the server's history, compaction keeps up with new events. A shorter load gets a shorter history. */
const long = 1200
const merge = 'application/merge-patch+json'
const padding = 'x'.repeat(400)

export type Steady = {
  readonly perSecond: number
  readonly reads: Latencies
  readonly writes: Latencies
  readonly errors: number
  /** Resident memory in bytes, as medians: in the first quarter after warm-up, and in the last. */
  readonly memory: { readonly warm: number; readonly end: number }
}
export type Overload = {
  readonly writers: number
  readonly answered: number
  readonly refused: number
  readonly live: Latencies
  /** Milliseconds until ordinary requests were fast again. */
  readonly recovery: number
}

export async function runLoad(options: { readonly seconds: number; readonly overload: number; readonly seed: string }) {
  const imports = options.seconds > long ? [] : [new URL('./short-history.ts', import.meta.url).href]
  const server = await startServer({ storage: 'sqlite', args: ['--audit-log', 'off'], begin: { imports } })
  const to: LeanOptions = { url: server.https, key: server.adminKey, ca: server.ca }
  try {
    const fill = openClients(to, 32)
    await inLanes(
      32,
      names,
      (index, lane) => fill[lane]?.ask('POST', teams, teamText(`n${index}`, padding, 'red')) ?? Promise.resolve(),
    )
    for (const client of fill) client.close()
    const { resident } = await vitalsOf(server)
    const steady = await runSteady(to, options.seconds, options.seed, resident)
    return { steady, overload: await runOverload(to, options.overload) }
  } finally {
    await server.kill()
  }
}

const openClients = (to: LeanOptions, count: number) => Array.from({ length: count }, () => openLeanClient(to))

/** Sends requests at their scheduled time, even if earlier ones are slow. Their delay counts. */
async function runSteady(to: LeanOptions, seconds: number, seed: string, resident: () => number): Promise<Steady> {
  const rate = 2000
  const roll = diceOf(`${seed}/steady`)
  const free = openClients(to, 128)
  const all = [...free]
  // Connections are open before the measurement.
  for (const client of all) await client.ask('GET', '/livez')
  const [reads, writes] = [openLatencies(), openLatencies()]
  // The heap grows to its size in steps, the last of them after about 90 s.
  const warm = (seconds > long ? long * 0.55 : seconds / 2) * 1000
  const sizes: number[] = []
  const started = performance.now()
  let sent = 0
  let errors = 0

  async function one(client: LeanClient, due: number): Promise<void> {
    const kind = roll(100)
    const name = `${teams}/n${roll(names)}`
    const isRead = kind < 80
    const answer = await (kind < 70
      ? client.ask('GET', name)
      : isRead
        ? client.ask('GET', `${teams}?limit=20`)
        : client.ask('PATCH', name, `{"spec":{"displayName":"d${roll(1e9)}"}}`, merge)
    ).catch(() => undefined)
    const took = performance.now() - due
    if (answer?.code !== 200) errors++
    if (due - started > warm) (isRead ? reads : writes).add(took)
    free.push(client)
  }

  while (performance.now() - started < seconds * 1000) {
    const elapsed = performance.now() - started
    const due = Math.floor((elapsed / 1000) * rate)
    while (sent < due && free.length > 0) void one(free.pop() as LeanClient, started + (sent++ / rate) * 1000)
    if (elapsed > warm + sizes.length * 250) sizes.push(resident())
    await pause(2)
  }
  while (free.length < all.length) await pause(5)
  for (const client of all) client.close()
  const quarter = Math.ceil(sizes.length / 4)
  const memory = { warm: middleOf(sizes.slice(0, quarter)), end: middleOf(sizes.slice(-quarter)) }
  return { perSecond: sent / seconds, reads, writes, errors, memory }
}

const middleOf = (values: readonly number[]) => values.toSorted((one, other) => one - other)[values.length >> 1] ?? 0

async function runOverload(to: LeanOptions, seconds: number): Promise<Overload> {
  const writers = 2000
  const clients = openClients(to, writers)
  for (let at = 0; at < writers; at += 50)
    await Promise.all(clients.slice(at, at + 50).map(one => one.ask('GET', '/livez')))
  const probe = new Worker(new URL('./live-probe.ts', import.meta.url), { workerData: to })
  await once(probe, 'message')
  const counts = { answered: 0, refused: 0 }
  const end = performance.now() + seconds * 1000
  await Promise.all(
    clients.map(async (client, index) => {
      while (performance.now() < end) {
        const body = `{"spec":{"displayName":"${index}-${performance.now()}"}}`
        const answer = await client.ask('PATCH', `${teams}/n${index % names}`, body, merge).catch(() => undefined)
        if (answer?.code === 429) {
          counts.refused++
          await pause(1000) // as its Retry-After asks
        } else counts.answered++
      }
    }),
  )
  probe.postMessage('over')
  const [took] = (await once(probe, 'message')) as [number[]]
  const live = openLatencies()
  for (const one of took) live.add(one)
  const recovery = await recoveryOf(clients[0] as LeanClient)
  for (const client of clients) client.close()
  return { writers, ...counts, live, recovery }
}

/** Until twenty consecutive writes took less than 50 milliseconds each. */
async function recoveryOf(client: LeanClient): Promise<number> {
  const over = performance.now()
  for (let quick = 0, last = over; quick < 20; ) {
    const started = performance.now()
    await client.ask('PATCH', `${teams}/n0`, `{"spec":{"displayName":"${started}"}}`, merge)
    quick = performance.now() - started < 50 ? quick + 1 : 0
    if (quick === 0) last = performance.now()
    if (quick === 20) return last - over
    if (started - over > 60_000) break
  }
  return Number.POSITIVE_INFINITY
}
