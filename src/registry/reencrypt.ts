// Re-encrypts values that are not encrypted with the first key of the ring (D28).
// Runs in the background, in small steps. On SQLite the revision stays and there are no events; on etcd each is an update. The stored
// data shows the remaining work, so an interrupted run just starts again.

import { Buffer } from 'node:buffer'
import { isUndecryptable } from '../api/errors.ts'
import { fieldPath, readAt } from '../api/field-path.ts'
import type { Kind } from '../api/kind.ts'
import type { JsonObject } from '../api/object.ts'
import { keyIdOf, SEALED, type Sealer } from '../storage/encryption.ts'
import type { Entry, Replacement, Store } from '../storage/store.ts'
import { encode, load } from './object-codec.ts'

export type ReencryptionOptions = {
  readonly store: Pick<Store, 'list' | 'replace'>
  readonly sealer: Sealer
  readonly kinds: readonly Kind[]
  readonly failed: (what: string, error: unknown) => void
  readonly wait?: (milliseconds: number) => Promise<void>
  /** Whether this replica still does it: another one may have taken over. */
  readonly isActive?: () => boolean
  /** A pause after each batch of writes. */
  readonly pauseMs?: number
}

export interface Reencryption {
  /** Re-encrypted values, and values that were skipped because they are undecryptable. */
  readonly done: number
  readonly broken: number
  /** Scans everything, again if a scan is running, because the ring has changed. */
  begin(): void
  /** Resolves when no scan is running. */
  idle(): Promise<void>
  stop(): Promise<void>
}

const batchSize = 64
const tryAgainAfter = 1000
const mark = Buffer.from(`"${SEALED}`)
const sleep = (milliseconds: number) => new Promise<void>(resolve => setTimeout(resolve, milliseconds).unref())

export function openReencryption(options: ReencryptionOptions): Reencryption {
  const { store, sealer, kinds, failed, wait = sleep, isActive = () => true, pauseMs = 0 } = options
  const counts = { done: 0, broken: 0 }
  let requested = 0
  let stopped = false
  let running: Promise<void> | undefined

  const again = (entry: Entry, kind: Kind): readonly Replacement[] => {
    if (isCurrent(entry, kind, sealer)) return []
    try {
      const value = encode({ sealer }, kind, load({ sealer }, kind, entry))
      return [{ key: entry.key, revision: entry.revision, value }]
    } catch (error) {
      if (!isUndecryptable(error)) throw error
      counts.broken++ // the sealer already reported it
      return []
    }
  }

  const scan = async (run: number) => {
    counts.broken = 0
    for (const kind of kinds.filter(one => one.stored && one.sealed.length)) {
      let after: Entry['key'] | undefined
      for (;;) {
        if (stopped || run !== requested || !isActive()) return
        const { entries, more } = store.list({ bucket: kind.id, limit: batchSize, ...(after ? { after } : {}) })
        after = entries.at(-1)?.key
        const items = entries.flatMap(entry => again(entry, kind))
        if (items.length) counts.done += await store.replace(items)
        if (items.length && pauseMs) await wait(pauseMs)
        else await new Promise(setImmediate) // yield to requests
        if (!more) break
      }
    }
  }

  const run = async () => {
    for (let run = -1; run !== requested && !stopped; ) {
      const now = requested
      try {
        await scan(now)
        run = now
      } catch (error) {
        failed('re-encrypting stored values', error)
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
      requested++
      if (!stopped) running ??= run()
    },
    idle: async () => running,
    async stop() {
      stopped = true
      await running
    },
  }
}

/** Checks the bytes first, because nearly every value is current and need not be parsed. */
function isCurrent({ text }: Entry, kind: Kind, sealer: Sealer): boolean {
  if (!text.includes(mark)) return true
  const object = JSON.parse(text.toString()) as JsonObject
  return kind.sealed.every(path => {
    const value = readAt(object, fieldPath(path))
    return typeof value !== 'string' || sealer.isCurrent(value)
  })
}

/** Counts sealed values by the id of their key. */
export function countByKey(store: Pick<Store, 'list'>, kinds: readonly Kind[]): ReadonlyMap<string, number> {
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
