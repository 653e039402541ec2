// Seals anew what another key than the ring's first has sealed (D28): in the background, in small steps, at the same revision and without events.
// What is left to do is found in what is stored, so whoever is interrupted just begins again.

import { Buffer } from 'node:buffer'
import { isSealBroken } from '../api/errors.ts'
import { fieldPath, readAt } from '../api/field-path.ts'
import type { Kind } from '../api/kind.ts'
import type { JsonObject } from '../api/object.ts'
import { keyIdOf, SEALED, type Sealer } from '../storage/encryption.ts'
import type { Entry, Replacement, Store } from '../storage/store.ts'
import { encode, load } from './object-codec.ts'

export type ResealOptions = {
  readonly store: Pick<Store, 'list' | 'replace'>
  readonly sealer: Sealer
  readonly kinds: readonly Kind[]
  readonly failed: (what: string, error: unknown) => void
  readonly wait?: (milliseconds: number) => Promise<void>
}

export interface Reseal {
  /** Sealed anew so far, and left as they are because they do not open. */
  readonly done: number
  readonly broken: number
  /** Looks through everything, again if it is under way: the ring has changed. */
  begin(): void
  /** Resolves when nothing is under way. */
  idle(): Promise<void>
  stop(): Promise<void>
}

const together = 64
const tryAgainAfter = 1000
const mark = Buffer.from(`"${SEALED}`)
const sleep = (milliseconds: number) => new Promise<void>(resolve => setTimeout(resolve, milliseconds).unref())

export function startReseal({ store, sealer, kinds, failed, wait = sleep }: ResealOptions): Reseal {
  const counts = { done: 0, broken: 0 }
  let asked = 0
  let stopped = false
  let running: Promise<void> | undefined

  const again = (entry: Entry, kind: Kind): readonly Replacement[] => {
    if (isCurrent(entry, kind, sealer)) return []
    try {
      const value = encode({ sealer }, kind, load({ sealer }, kind, entry))
      return [{ key: entry.key, revision: entry.revision, value }]
    } catch (error) {
      if (!isSealBroken(error)) throw error
      counts.broken++ // it was told of when it did not open, and hinders nobody
      return []
    }
  }

  const walk = async (turn: number) => {
    counts.broken = 0
    for (const kind of kinds.filter(one => one.stored && one.sealed.length)) {
      let after: Entry['key'] | undefined
      for (;;) {
        if (stopped || turn !== asked) return
        const { entries, more } = store.list({ bucket: kind.id, limit: together, ...(after ? { after } : {}) })
        after = entries.at(-1)?.key
        const items = entries.flatMap(entry => again(entry, kind))
        if (items.length) counts.done += await store.replace(items)
        await new Promise(setImmediate) // requests go first
        if (!more) break
      }
    }
  }

  const run = async () => {
    for (let turn = -1; turn !== asked && !stopped; ) {
      const now = asked
      try {
        await walk(now)
        turn = now
      } catch (error) {
        failed('sealing anew', error)
        await wait(tryAgainAfter)
      }
    }
    running = undefined
  }

  return {
    get done() {
      return counts.done
    },
    get broken() {
      return counts.broken
    },
    begin() {
      asked++
      if (!stopped) running ??= run()
    },
    idle: async () => running,
    async stop() {
      stopped = true
      await running
    },
  }
}

/** By the bytes first: nearly everything is, and need not be parsed to know it. */
function isCurrent({ text }: Entry, kind: Kind, sealer: Sealer): boolean {
  if (!text.includes(mark)) return true
  const object = JSON.parse(text.toString()) as JsonObject
  return kind.sealed.every(path => {
    const value = readAt(object, fieldPath(path))
    return typeof value !== 'string' || sealer.isCurrent(value)
  })
}

/** How many sealed values there are, by the id of their key. */
export function countSeals(store: Pick<Store, 'list'>, kinds: readonly Kind[]): ReadonlyMap<string, number> {
  const found = new Map<string, number>()
  for (const kind of kinds.filter(one => one.stored && one.sealed.length))
    for (const { text } of store.list({ bucket: kind.id }).entries) {
      const object = text.includes(mark) ? (JSON.parse(text.toString()) as JsonObject) : {}
      for (const path of kind.sealed) {
        const value = readAt(object, fieldPath(path))
        const id = typeof value === 'string' ? keyIdOf(value) : undefined
        if (id !== undefined) found.set(id, (found.get(id) ?? 0) + 1)
      }
    }
  return found
}
