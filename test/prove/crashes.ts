// Kills a server with eight writers repeatedly, at random moments and at fail points, and checks that it keeps all acknowledged writes.
// crashes.test.ts runs it at length, test/e2e/crashes.slow.test.ts a slice of it.

import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { type Server, startServer } from '../support/server.ts'
import { points } from './fail-points.ts'
import { type Event, openHistory, type Seen } from './history.ts'
import { type Dice, diceOf } from './seeded-random.ts'

const teams = '/apis/management.platform.sh/v1/teams'
const writers = 8
const namesEach = 12
const merge = { 'content-type': 'application/merge-patch+json' }

export type Outcome = {
  readonly kills: number
  readonly writes: number
  readonly events: number
  /** The fail point of each kill. */
  readonly at: readonly string[]
}

export async function runCrashes(kills: number, seed: string): Promise<Outcome> {
  const server = await startServer({ storage: 'sqlite' })
  const roll = diceOf(`${seed}/kills`)
  const history = openHistory()
  const at: string[] = []
  try {
    const from = Number((await stateOf(server)).revision)
    const watcher = openWatcher(server, from)
    for (let kill = 0; kill < kills; kill++) {
      const names = Object.keys(points)
      const place = roll(2) ? names[roll(names.length)] : undefined
      const times = 1 + roll(points[place ?? '']?.soon ? 3 : 40)
      const env = place ? { PROVE_FAIL_POINT: place, PROVE_FAIL_AFTER: String(times) } : {}
      await server.crash({ imports: [new URL('./fail-points.ts', import.meta.url).href], env })
      const { items, revision } = await stateOf(server)
      history.check(items, Number(revision))
      const round = { over: false }
      const work = Array.from({ length: writers }, (_, n) =>
        write(server, history, n, diceOf(`${seed}/${kill}/${n}`), round),
      )
      const late = place ? enoughWrites(history, round) : pause(20 + roll(300))
      const ends = [server.died().then(() => place ?? 'by itself'), late.then(() => 'any moment')]
      at.push(await Promise.race(ends))
      round.over = true
      await server.die()
      await Promise.all(work)
    }
    await server.crash({})
    const { items, revision } = await stateOf(server)
    history.check(items, Number(revision))
    const events = await watcher.until(Number(revision))
    history.checkEvents(events, items, from)
    return { kills, writes: history.writes, events: events.length, at }
  } finally {
    await server.kill()
  }
}

type Item = { readonly metadata: { name: string; resourceVersion: string }; readonly spec: { description?: string } }
const seenIn = ({ metadata, spec }: Item): Seen => ({
  name: metadata.name,
  version: Number(metadata.resourceVersion),
  value: spec.description ?? '',
})

async function stateOf(server: Server): Promise<{ items: Seen[]; revision: string }> {
  const { status, body, text } = await server.request('GET', teams)
  assert.equal(status, 200, text)
  return { items: body.items.map(seenIn), revision: body.metadata.resourceVersion }
}

/** Some fail points are not reached in every round. */
const enough = 600

async function enoughWrites(history: ReturnType<typeof openHistory>, round: { readonly over: boolean }): Promise<void> {
  const [start, end] = [history.writes, performance.now() + 15_000]
  while (!round.over && history.writes - start < enough && performance.now() < end) await pause(10)
}

/** Writes one after the other, to its own names, until the server is gone. */
async function write(
  server: Server,
  history: ReturnType<typeof openHistory>,
  writer: number,
  roll: Dice,
  round: { readonly over: boolean },
): Promise<void> {
  while (!round.over) {
    const name = `w${writer}-${roll(namesEach)}`
    const value = `${'x'.repeat(roll(2000))}${roll(1e9)}`
    const there = history.stateOf(name) !== undefined
    const isDelete = there && roll(5) === 0
    history.begin(name, isDelete ? undefined : value)
    const spec = { description: value }
    const asked = isDelete
      ? server.request('DELETE', `${teams}/${name}`)
      : there
        ? server.request('PATCH', `${teams}/${name}`, { body: { spec }, headers: merge })
        : server.request('POST', teams, { body: { metadata: { name }, spec } })
    const answer = await asked.catch(() => undefined)
    if (!answer) return // the outcome stays unknown
    if (answer.status >= 300) {
      assert.ok(answer.status >= 500, `${answer.status} ${answer.text}`)
      if (answer.status === 503) history.refused(name)
      return
    }
    history.acknowledge(name, isDelete ? undefined : Number(answer.body.metadata.resourceVersion))
  }
}

/** Watches from a revision across all crashes, and resumes where it stopped. */
function openWatcher(server: Server, from: number) {
  const events: Event[] = []
  let last = from
  let bookmark = from
  let stopped = false
  const follow = async () => {
    while (!stopped) {
      try {
        for await (const { type, object } of server.watch(
          `${teams}?resourceVersion=${last}&allowWatchBookmarks=true`,
        )) {
          assert.notEqual(type, 'ERROR', JSON.stringify(object))
          last = Number(object.metadata.resourceVersion)
          bookmark = Math.max(bookmark, last)
          if (type !== 'BOOKMARK') events.push({ type, ...seenIn(object) })
        }
      } catch (error) {
        if (error instanceof assert.AssertionError) throw error
      }
      await pause(20)
    }
  }
  const following = follow()
  return {
    /** All events up to a revision, which is the last one. */
    async until(revision: number): Promise<readonly Event[]> {
      const end = Date.now() + 20_000
      // The newest revision may belong to another kind. Then it waits for a quiet period.
      while (last < revision && Date.now() < end && !(await isQuiet(() => events.length))) await pause(50)
      stopped = true
      void following.catch(() => {})
      return events
    },
  }
}

async function isQuiet(count: () => number): Promise<boolean> {
  const before = count()
  await pause(1500)
  return count() === before
}
