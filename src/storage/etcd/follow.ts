// Follows the keys of an installation in etcd: several watches read the history at the start, then one is continued at another member when it fails.
//
// Only two things prove how far the watch has come: an event, and a response to a progress request. A watch has its own stream,
// because etcd answers a progress request only when all watches of the stream are up to date.

import { setTimeout as pause } from 'node:timers/promises'
import { status } from '@grpc/grpc-js'
import { type EtcdClient, EtcdError, type WatchStream } from './client.ts'
import type { KeyRange } from './keys.ts'
import type { Event, ResponseHeader, WatchResponse } from './rpc.generated.ts'

export type FollowOptions = {
  readonly client: Pick<EtcdClient, 'watch'>
  readonly range: KeyRange
  /** The first revision to deliver. */
  readonly start: number
  /** Following begins with the state at this revision, if etcd still has it and it is not before the start. */
  readonly recent: number
  /** The newest revision when following starts. History up to it is read with several watches at once. */
  readonly newest: number
  /** The events of one revision. */
  readonly apply: (revision: number, events: readonly Event[]) => void
  /** All events up to the revision were delivered. */
  readonly progress: (revision: number) => void
  /** Reads the state at a revision instead of the history up to it. Resolves with this revision. */
  readonly reload: (revision: number) => Promise<number>
  /** The header of every response. Throws if the cluster cannot be trusted any more. */
  readonly heard: (header: ResponseHeader) => void
  readonly failed: (error: Error) => void
}

export type Following = {
  /** Resolves when everything up to an etcd revision was delivered. Rejects after `timeoutMs`. */
  reach(revision: number, timeoutMs: number): Promise<void>
  readonly revision: number
  stop(): void
}

const [askAfterMs, askEveryMs, stuckMs] = [20, 100, 1500]
const [minDelayMs, maxDelayMs] = [20, 1000]
/**
 * etcd sends at most 1,000 revisions of history every 100 ms to each watch. More watches need more memory of etcd, and none of them
 * may be so slow that it counts as stuck.
 */
const [partRevisions, maxParts] = [1000, 8]

type Part = { readonly stream: WatchStream; readonly end: number }

type Waiter = { readonly revision: number; readonly resolve: () => void }

export function follow(options: FollowOptions): Following {
  let delivered = options.start - 1
  let waiters: Waiter[] = []
  let stopped = false
  let stream: WatchStream | undefined
  let avoid: string | undefined
  let asking: NodeJS.Timeout | undefined
  let behindSince = 0
  /** Events of a revision whose other events have not arrived. */
  let begun: readonly Event[] = []

  function advance(revision: number): void {
    if (revision <= delivered) return
    delivered = revision
    behindSince = 0
    if (waiters.length === 0) return
    const reached = waiters.filter(waiter => waiter.revision <= revision)
    if (reached.length === 0) return
    waiters = waiters.filter(waiter => waiter.revision > revision)
    for (const { resolve } of reached) resolve()
  }

  /** Asks for progress while somebody waits. Without an answer, the next member is tried. */
  function ask(): void {
    clearTimeout(asking)
    asking = undefined
    if (stopped || waiters.length === 0) return
    behindSince ||= performance.now()
    if (performance.now() - behindSince > stuckMs) {
      behindSince = 0
      stream?.destroy(new Error('the watch does not advance'))
    } else stream?.write({ progressRequest: {} })
    asking = setTimeout(ask, askEveryMs)
  }

  async function take(watched: WatchResponse): Promise<void> {
    const { header, created, canceled, compactRevision, cancelReason, ...response } = watched
    if (header) options.heard(header)
    behindSince = 0
    if (canceled) throw new CancelledError(cancelReason, compactRevision)
    if (created) return
    const events = begun.length ? [...begun, ...response.events] : response.events
    begun = []
    if (events.length === 0) {
      options.progress(header?.revision ?? 0)
      advance(header?.revision ?? 0)
      return
    }
    for (let at = 0; at < events.length; ) {
      const revision = revisionOf(events[at])
      let end = at + 1
      while (end < events.length && revisionOf(events[end]) === revision) end++
      // The rest of this revision is in the next response.
      if (response.fragment && end === events.length) {
        begun = events.slice(at)
        return
      }
      // A new watch may repeat what an earlier one delivered.
      if (revision > delivered) {
        options.apply(revision, end - at === events.length ? events : events.slice(at, end))
        advance(revision)
        await handled()
      }
      at = end
    }
  }

  async function run(): Promise<void> {
    let isInParts = true
    if (options.recent > delivered)
      await options.reload(options.recent).then(advance, error => isCompaction(error) || options.failed(error as Error))
    for (let delay = minDelayMs; !stopped; ) {
      const before = delivered
      try {
        if (isInParts) await catchUp()
        await watchOnce()
      } catch (error) {
        if (stopped) return
        const isCompacted = error instanceof CancelledError && error.oldest > delivered
        if (isCompacted) await options.reload(error.oldest).then(advance, options.failed)
        else {
          // A slow connection may deliver one watch in time, and not several.
          isInParts = false
          options.failed(error as Error)
        }
      }
      delay = delivered > before ? minDelayMs : Math.min(delay * 2, maxDelayMs)
      if (!stopped) await pause(delay, undefined, { ref: false })
    }
  }

  /** Reads history in parts of equal length, each with its own watch. */
  async function catchUp(): Promise<void> {
    let next = delivered + 1
    const parts: Part[] = []
    const open = async () => {
      const { stream: opened } = await options.client.watch(avoid)
      // A watch that was cancelled fails. The loop below sees other failures.
      opened.on('error', () => {})
      opened.write({ createRequest: { ...options.range, startRevision: next, progressNotify: false, fragment: true } })
      next += partRevisions
      parts.push({ stream: opened, end: next - 1 })
    }
    try {
      while (!stopped && options.newest - delivered > partRevisions) {
        while (!stopped && parts.length < maxParts && next <= options.newest) await open()
        const [part] = parts
        if (part && part.end > delivered && !stopped) await takePart(part)
        parts.shift()?.stream.cancel()
      }
    } finally {
      for (const part of parts) part.stream.cancel()
    }
  }

  async function takePart(part: Part): Promise<void> {
    stream = part.stream
    begun = []
    behindSince = 0
    try {
      // The watch goes on after its part, and the next part skips what it delivered.
      for await (const response of part.stream) {
        await take(response as WatchResponse)
        if (delivered >= part.end || stopped) return
      }
      throw new Error('etcd ended the watch')
    } finally {
      stream = undefined
    }
  }

  async function watchOnce(): Promise<void> {
    const opened = await options.client.watch(avoid)
    avoid = opened.endpoint
    stream = opened.stream
    begun = []
    behindSince = 0
    const request = { ...options.range, startRevision: delivered + 1, progressNotify: true, fragment: true }
    let taking = Promise.resolve()
    let failure: Error | undefined
    const fail = (error: Error) => {
      failure ??= error
      opened.stream.destroy(error)
    }
    const ended = new Promise<void>((resolve, reject) => {
      opened.stream.on('data', (response: WatchResponse) => {
        taking = taking.then(() => (failure ? undefined : take(response))).catch(fail)
      })
      opened.stream.on('error', reject)
      opened.stream.on('close', resolve)
      opened.stream.on('end', resolve)
      opened.stream.write({ createRequest: request })
    })
    try {
      await ended
    } finally {
      stream = undefined
      opened.stream.cancel()
      await taking
    }
    // The stream may have ended by itself in the meantime.
    if (failure) throw failure
  }

  void run().catch(options.failed)
  return {
    get revision() {
      return delivered
    },
    reach(revision, timeoutMs) {
      if (revision <= delivered) return Promise.resolve()
      return new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          waiters = waiters.filter(one => one !== waiter)
          reject(new Error(`the watch of etcd is behind: it is at revision ${delivered}, not ${revision}`))
        }, timeoutMs)
        const waiter = {
          revision,
          resolve: () => {
            clearTimeout(timer)
            resolve()
          },
        }
        waiters.push(waiter)
        asking ??= setTimeout(ask, askAfterMs)
      })
    },
    stop() {
      stopped = true
      clearTimeout(asking)
      stream?.cancel()
    },
  }
}

/**
 * Resolves when informers have handled the last change. Otherwise watches would deliver what was written after a revocation in the
 * same response, because they would ask for permissions that are not as new (D71).
 */
const handled = () =>
  new Promise<void>(resolve => {
    // After all microtasks, and the ones that they add.
    queueMicrotask(() => process.nextTick(resolve))
  })

const isCompaction = (error: unknown) => error instanceof EtcdError && error.code === status.OUT_OF_RANGE

const revisionOf = (event: Event | undefined) => event?.kv?.modRevision ?? 0

class CancelledError extends Error {
  readonly oldest: number
  constructor(reason: string, oldest: number) {
    super(`etcd ended the watch: ${reason || 'history was compacted'}`)
    this.oldest = oldest
  }
}
