// Watchers that disconnect and reconnect, and record every event. traffic.ts runs some while its clients write.

import { setTimeout as pause } from 'node:timers/promises'
import type { Connect } from './lean-client.ts'
import { sightOf, type Team, teams } from './observed-teams.ts'
import type { List, Session, Told } from './recording.ts'
import type { Dice } from './seeded-random.ts'

export type Color = 'red' | 'blue'

export type WatcherOptions = {
  readonly connect: Connect
  readonly watcher: number
  readonly from: number
  readonly color?: Color
  /** Whether every session begins with the state, like an informer without a list. */
  readonly fromState?: boolean
  /** Whether it runs until it is stopped. Then it sees only delivered events. */
  readonly stays?: boolean
  /** Whether every session begins at an earlier version, as of a client that did not watch for long. */
  readonly isLate?: boolean
  readonly roll: Dice
  readonly tick: () => number
  /** A version that exists. A watcher whose history is gone continues there. */
  readonly newest: () => number
  readonly keepSession: (session: Session) => void
  readonly keepList: (list: List) => void
}

export type Watcher = {
  /** The newest revision it has seen. */
  readonly reached: number
  readonly color: Color | undefined
  /** Whether it reconnects often, and resumes where it stopped. */
  readonly needsHistory: boolean
  stop(): Promise<void>
}

/** Less than the history that a server keeps in any case. */
const furthest = 5000

export function startWatcher(options: WatcherOptions): Watcher {
  const { connect, color, roll, tick } = options
  const isResumed = !options.fromState && !options.isLate
  let reached = options.from
  let stopped = false
  let leave = () => {}

  /** Returns whether the next session continues this one. */
  async function follow(id: number): Promise<boolean> {
    // The server ends all but one of them within two seconds.
    const client = connect(options.stays ? undefined : 8000)
    const told: Told[] = []
    const start = tick()
    let state: Told[] | undefined = options.fromState ? [] : undefined
    if (options.isLate) reached = Math.max(options.from, options.newest() - roll(furthest))
    let from = reached
    let gone = false
    // The server ends half of them, with a bookmark.
    let left = options.stays || roll(2) ? Number.POSITIVE_INFINITY : 1 + roll(400)
    leave = client.close
    const take = (line: string) => {
      if (left <= 0) return // received before it stopped, but not checked
      const { type, object } = JSON.parse(line) as { type: Told['type'] | 'ERROR'; object: Team }
      if (type === 'ERROR') gone = true
      else {
        const event: Told = { tick: tick(), type, ...sightOf(object) }
        if (state && object.metadata.annotations?.['k8s.io/initial-events-end']) {
          from = event.version
          const list = { start, end: event.tick, at: from, items: state, more: false }
          options.keepList(color === undefined ? list : { ...list, color })
          state = undefined
        } else (state ?? told).push(event)
        if (!state) reached = Math.max(reached, event.version)
      }
      if (--left <= 0 && !state) client.close()
    }
    const query = state ? 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan' : `resourceVersion=${reached}`
    const selector = color === undefined ? '' : `&labelSelector=color%3D${color}`
    const path = `${teams}?watch=true&allowWatchBookmarks=true&timeoutSeconds=${options.stays ? 3600 : 1 + roll(2)}&${query}${selector}`
    const code = await client.follow(path, take).catch(() => 0)
    client.close()
    gone ||= code === 410
    const loose = !isResumed || gone
    if (gone) reached = options.newest()
    const end = tick()
    if (!state)
      options.keepSession({ watcher: id, from, told, gone, end, loose, ...(color === undefined ? {} : { color }) })
    return !loose
  }

  async function run(): Promise<void> {
    // A watch that starts with the state does not continue from where another stopped: each is a separate watcher.
    for (let id = options.watcher; !stopped; ) {
      if (!(await follow(id))) id += 1000
      if (!stopped) await pause(roll(30))
    }
  }

  const running = run()
  return {
    get reached() {
      return reached
    },
    color,
    needsHistory: isResumed && !options.stays,
    async stop() {
      stopped = true
      leave()
      await running
    },
  }
}
