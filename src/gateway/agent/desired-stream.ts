// Follows clusters/<name>/desired. Every connection begins with the whole state, and never resumes an earlier one.

import { ApiError, type Status } from '../../api/errors.ts'
import type { Watch } from '../../api/resources.ts'
import { type DesiredItem, terminatingAnnotation } from '../../kinds/cluster-desired.ts'
import type { DesiredState } from './desired-state.ts'

export type DesiredStreamOptions = {
  /** Opens the watch. Rejects with the error of the management API. */
  readonly open: () => Promise<Watch>
  readonly state: Pick<DesiredState, 'begin' | 'put' | 'remove' | 'complete'>
  /** Called after every batch of events with the newest resourceVersion. */
  readonly seen: (version: string) => void
  /** The whole state has arrived. */
  readonly completed: () => void
  /** The management API does not accept the agent: its key is revoked, or the cluster is disabled or deleted. */
  readonly rejected: (error: ApiError) => void
  /** Any other failure. The agent keeps what it knows. */
  readonly failed: (error: unknown) => void
  readonly wait: (milliseconds: number) => Promise<void>
  readonly random: () => number
  readonly signal: AbortSignal
}

const minDelay = 250
const [maxDelay, maxDelayRejected] = [10_000, 60_000]
const initialEventsEnd = 'k8s.io/initial-events-end'

/** Resolves after the signal. */
export async function followDesired(options: DesiredStreamOptions): Promise<void> {
  const { rejected, failed, wait, random, signal } = options
  for (let failures = 0; !signal.aborted; failures++) {
    const { error, isComplete } = await follow(options)
    if (signal.aborted) return
    if (isComplete) failures = 0
    if (isRejection(error)) rejected(error)
    else if (error !== undefined) failed(error)
    const limit = isRejection(error) ? maxDelayRejected : maxDelay
    await wait(Math.min(limit, minDelay * 2 ** Math.min(failures, 20)) * (0.5 + random() / 2))
  }
}

/** Only a Status of the management API says this. A bare response may come from a proxy. */
export const isRejection = (error: unknown): error is ApiError =>
  error instanceof ApiError && [401, 403, 404].includes(error.code) && Boolean(error.reason)

/** `error`: why the stream ended, if somebody said so. */
type Ended = { readonly error?: unknown; readonly isComplete: boolean }

async function follow({ open, state, seen, completed, signal }: DesiredStreamOptions): Promise<Ended> {
  let isComplete = false
  let watch: Watch | undefined
  const stop = () => watch?.stop()
  signal.addEventListener('abort', stop)
  try {
    watch = await open()
    state.begin()
    for (let events = await watch.next(); events && !signal.aborted; events = await watch.next()) {
      for (const { type, document } of events) {
        if (type === 'ERROR') return { error: errorOf(document.object as unknown as Status), isComplete }
        const { metadata } = document.object
        if (type === 'DELETED') state.remove(metadata.name ?? '')
        else if (type !== 'BOOKMARK') state.put(document.object as unknown as DesiredItem)
        else if (!isComplete && metadata.annotations?.[initialEventsEnd] === 'true') {
          isComplete = true
          state.complete({ isTerminating: metadata.annotations[terminatingAnnotation] === 'true' })
          completed()
        }
      }
      seen(watch.bookmark().document.object.metadata.resourceVersion ?? '')
    }
    return { isComplete }
  } catch (error) {
    return { error, isComplete }
  } finally {
    signal.removeEventListener('abort', stop)
    watch?.stop()
  }
}

const errorOf = ({ code = 500, reason = '', message = '' }: Status) => new ApiError(code, reason, message)
