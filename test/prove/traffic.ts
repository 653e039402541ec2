// Clients and watchers on a real server, in the mix of etcd's Kubernetes profile, and the record of all responses.

import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { openClient } from './client.ts'
import { type Connect, type LeanOptions, openLeanClient } from './lean-client.ts'
import { teams } from './observed-teams.ts'
import type { Compaction, Get, List, Recording, Session, Write } from './recording.ts'
import { diceOf } from './seeded-random.ts'
import { type Color, startWatcher, type Watcher, type WatcherOptions } from './watchers.ts'

export type TrafficOptions = {
  readonly operations: number
  readonly seed: string
  readonly clients?: number
  /** Milliseconds for watchers to reach the end. */
  readonly patience?: number
  /** Injects faults. Requests continue until it resolves. */
  readonly meanwhile?: (tape: Tape) => Promise<void>
  /** Reads also with resourceVersion=0, from servers whose state is at most so many milliseconds old, and watches from old versions. */
  readonly maxAge?: number
}

/** Records everything as it happens. */
export type Tape = {
  readonly writes: Write[]
  readonly gets: Get[]
  readonly lists: List[]
  readonly tick: () => number
  /** The last observed state of a name, by any client: its version, and the whole text. */
  readonly known: Map<string, { readonly version: number; readonly text: string }>
  newest: number
  /** A tick that is `maxAge` ago. Everything from before it must be in reads with resourceVersion=0. */
  readonly oldest: (() => number) | undefined
  readonly compactions: Compaction[]
  /** The version that all watchers have reached that reconnect and resume. They need the history after it. */
  readonly reached: () => number
}

export const connectTo =
  (server: LeanOptions): Connect =>
  () =>
    openLeanClient(server)

/** How long the clients wait for an answer, in milliseconds. */
const patiences = [1000, 2500, 15_000]

/** The server must be new, because existing objects have no recorded write. */
export async function runTraffic(connect: Connect, options: TrafficOptions): Promise<Recording> {
  const { operations, seed, clients = 64, patience = 20_000, maxAge } = options
  const from = await emptyAt(connect)
  let ticks = 0
  const tick = () => ++ticks
  const ages = maxAge === undefined ? undefined : openAges(tick, maxAge)
  const tape: Tape = {
    writes: [],
    gets: [],
    lists: [],
    tick,
    known: new Map(),
    newest: from,
    oldest: ages?.oldest,
    compactions: [],
    reached: () => Math.min(...watchers.flatMap(watcher => (watcher.needsHistory ? [watcher.reached] : []))),
  }
  const sessions: Session[] = []
  const watch = (watcher: number, more: Pick<WatcherOptions, 'color' | 'fromState' | 'stays' | 'isLate'>) =>
    startWatcher({
      connect,
      watcher,
      from,
      roll: diceOf(`${seed}/watcher ${watcher}`),
      tick,
      newest: () => tape.newest,
      keepSession: session => sessions.push(session),
      keepList: list => tape.lists.push(list),
      ...more,
    })
  const watchers = [
    watch(0, {}),
    watch(1, {}),
    watch(2, { color: 'red' }),
    watch(3, { color: 'blue' }),
    watch(4, { fromState: true }),
    watch(5, { fromState: true, color: 'red' }),
    watch(6, { stays: true }),
  ]
  const late = ages ? [watch(7, { isLate: true })] : []
  let left = operations
  let isDisturbed = options.meanwhile !== undefined
  const disturbing = options.meanwhile?.(tape).finally(() => {
    isDisturbed = false
  })
  const lanes = Array.from({ length: clients }, (_, id) =>
    openClient(connect(patiences[id % patiences.length]), tape, id, diceOf(`${seed}/${id}`)),
  )
  await Promise.all(
    lanes.map(async client => {
      while (left > 0 || isDisturbed) {
        const asked = await client.next()
        left -= asked
      }
    }),
  )
  await disturbing
  const ends = await endWith(lanes[0] as ReturnType<typeof openClient>)
  const last = Math.max(ends.red, ends.blue)
  const isBehind = ({ reached, color }: Watcher) => reached < (color ? ends[color] : last)
  for (const end = Date.now() + patience; watchers.some(isBehind) && Date.now() < end; ) await pause(5)
  await Promise.all([...watchers, ...late].map(watcher => watcher.stop()))
  for (const lane of lanes) lane.close()
  ages?.stop()
  const { writes, gets, lists, compactions } = tape
  return { writes, gets, lists, sessions, from, last, compactions }
}

export const operationsIn = ({ writes, gets, lists }: Recording) => writes.length + gets.length + lists.length

/** Responses that a server without faults must not give. */
export const strangeIn = ({ writes, gets }: Recording) =>
  [...writes, ...gets].filter(({ code }) => ![200, 201, 404, 409].includes(code)).length

async function emptyAt(connect: Connect): Promise<number> {
  const client = connect()
  const { code, text } = await client.ask('GET', teams)
  client.close()
  assert.equal(code, 200, text)
  const { items, metadata } = JSON.parse(text) as { items: unknown[]; metadata: { resourceVersion: string } }
  assert.deepEqual(items, [])
  return Number(metadata.resourceVersion)
}

/** Creates one object per color, so that every watcher has a last event. Returns their revisions. */
async function endWith(client: ReturnType<typeof openClient>): Promise<{ [color in Color]: number }> {
  return { red: await createEnd(client, 'red'), blue: await createEnd(client, 'blue') }
}

async function createEnd(client: ReturnType<typeof openClient>, color: Color): Promise<number> {
  for (let attempt = 0; attempt < 20; attempt++) {
    const version = await client.create(`zz-${color}-${attempt}`, color)
    if (version > 0) return version
    await pause(500)
  }
  throw new Error('the servers do not accept writes any more')
}

/** Remembers which tick was when. */
function openAges(tick: () => number, maxAge: number) {
  const samples: { readonly time: number; readonly tick: number }[] = []
  const sample = () => void samples.push({ time: performance.now(), tick: tick() })
  const timer = setInterval(sample, 20)
  sample()
  let next = 0
  return {
    oldest(): number {
      const limit = performance.now() - maxAge
      while ((samples[next]?.time ?? Number.POSITIVE_INFINITY) <= limit) next++
      return samples[next - 1]?.tick ?? 0
    },
    stop: () => clearInterval(timer),
  }
}
