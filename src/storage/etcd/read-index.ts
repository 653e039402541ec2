// Confirms that reads from memory are current: a linearizable read of etcd tells the revision that memory must have.
//
// All readers that arrived before the read was sent share it. A reader that arrives later waits for the next one, because the
// running one may have been answered before the write that the reader must see.

import { setTimeout as pause } from 'node:timers/promises'
import type { EtcdClient } from './client.ts'
import type { Following } from './follow.ts'
import { whenIdle } from './idle-thread.ts'
import type { KeyRange } from './keys.ts'
import type { ResponseHeader } from './rpc.generated.ts'

export type ReadIndex = {
  /** Resolves when memory contains every write that was acknowledged before the call. */
  confirm(): Promise<void>
  /** When the last successful confirmation was sent, by a clock that does not jump. */
  readonly confirmedAt: number
}

/** The watch continues at another member meanwhile, so this is enough for two attempts. */
const reachMs = 3000
const startMs = 10_000

const nextTurn = () => new Promise(setImmediate)

export function openReadIndex({
  client,
  range,
  following,
  heard,
}: {
  readonly client: Pick<EtcdClient, 'range'>
  readonly range: KeyRange
  readonly following: Pick<Following, 'reach' | 'revision'>
  /**
   * The header of a linearizable response, and the revision that had been delivered when it was requested. Throws if the cluster
   * cannot be trusted any more.
   */
  readonly heard: (header: ResponseHeader, delivered: number) => void
}): ReadIndex {
  let next: Promise<void> | undefined
  let running: Promise<unknown> = Promise.resolve()
  let confirmedAt = Number.NEGATIVE_INFINITY

  function read(): Promise<void> {
    const [sentAt, delivered] = [performance.now(), following.revision]
    // A single key that does not exist: the response is only a header.
    const answer = client.range({ key: range.key, countOnly: true })
    running = answer.catch(() => {})
    return answer.then(async ({ header }) => {
      if (header) heard(header, delivered)
      await following.reach(header?.revision ?? 0, reachMs)
      // Informers handle a change before the next turn of the event loop. Permissions must be as new as the data (D71).
      await nextTurn()
      confirmedAt = Math.max(confirmedAt, sentAt)
    })
  }

  return {
    get confirmedAt() {
      return confirmedAt
    },
    confirm() {
      // It costs several times as much CPU as a small read. Readers that arrive while the thread has other work share it.
      next ??= running
        .then(() => whenIdle())
        .then(() => {
          // From here on, new readers wait for the read after this one.
          next = undefined
          return read()
        })
      return next
    },
  }
}

/** Tries again while etcd elects a leader, and as long as data arrives. */
export async function firstConfirmation(confirm: () => Promise<void>, received: () => number): Promise<void> {
  let [last, since] = [received(), performance.now()]
  for (;;)
    try {
      return await confirm()
    } catch (error) {
      if (received() > last) [last, since] = [received(), performance.now()]
      if (performance.now() - since > startMs)
        throw new Error(`etcd has no quorum, or does not respond: ${(error as Error).message}`, { cause: error })
      await pause(200)
    }
}
