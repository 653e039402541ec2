// Clients and watchers on a real server, in the mix of etcd's Kubernetes profile, and the record of all responses.

import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { openClient } from './client.ts'
import { type LeanOptions, openLeanClient } from './lean-client.ts'
import { teams } from './observed-teams.ts'
import type { Get, List, Recording, Session, Write } from './recording.ts'
import { diceOf } from './seeded-random.ts'
import { type Color, startWatcher, type Watcher } from './watchers.ts'

export type TrafficOptions = {
  readonly operations: number
  readonly seed: string
  readonly clients?: number
  /** Milliseconds for watchers to reach the end. */
  readonly patience?: number
  /** Injects faults. Requests continue until it resolves. */
  readonly meanwhile?: (tape: Tape) => Promise<void>
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
}

/** The server must be new, because existing objects have no recorded write. */
export async function runTraffic(server: LeanOptions, options: TrafficOptions): Promise<Recording> {
  const { operations, seed, clients = 64, patience = 20_000 } = options
  const from = await emptyAt(server)
  let ticks = 0
  const tick = () => ++ticks
  const tape: Tape = { writes: [], gets: [], lists: [], tick, known: new Map(), newest: from }
  const sessions: Session[] = []
  const watch = (watcher: number, more: { color?: Color; fromState?: boolean; stays?: boolean }) =>
    startWatcher({
      server,
      watcher,
      from,
      roll: diceOf(`${seed}/watcher ${watcher}`),
      tick,
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
  let left = operations
  let isDisturbed = options.meanwhile !== undefined
  const disturbing = options.meanwhile?.(tape).finally(() => {
    isDisturbed = false
  })
  const lanes = Array.from({ length: clients }, (_, id) => openClient(server, tape, id, diceOf(`${seed}/${id}`)))
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
  await Promise.all(watchers.map(watcher => watcher.stop()))
  for (const lane of lanes) lane.close()
  return { writes: tape.writes, gets: tape.gets, lists: tape.lists, sessions, from, last }
}

export const operationsIn = ({ writes, gets, lists }: Recording) => writes.length + gets.length + lists.length

/** Responses that a server without faults must not give. */
export const strangeIn = ({ writes, gets }: Recording) =>
  [...writes, ...gets].filter(({ code }) => ![200, 201, 404, 409].includes(code)).length

async function emptyAt(server: LeanOptions): Promise<number> {
  const client = openLeanClient(server)
  const { code, text } = await client.ask('GET', teams)
  client.close()
  assert.equal(code, 200, text)
  const { items, metadata } = JSON.parse(text) as { items: unknown[]; metadata: { resourceVersion: string } }
  assert.deepEqual(items, [])
  return Number(metadata.resourceVersion)
}

/** Creates one object per color, so that every watcher has a last event. Returns their revisions. */
async function endWith(client: ReturnType<typeof openClient>): Promise<{ [color in Color]: number }> {
  return { red: await client.create('zz-red', 'red'), blue: await client.create('zz-blue', 'blue') }
}
