// Caches reviews of access keys for a few seconds: one request per key, and a limited number at a time.

import type { Caller } from '../../api/caller.ts'
import { ApiError, tooManyRequests } from '../../api/errors.ts'
import type { Principal } from './principal.ts'

export interface ReviewCache {
  /** Rejects with UnknownAccessKey, 429 or 503. */
  of(key: string, digest: string, from: From): Promise<Principal>
  /** The current generation of the management API. */
  readonly generation: number
  readonly known: number
}

export type From = {
  /** '' is exempt. */
  readonly address: string
  /** Throws 429 if this address may not have further unknown keys reviewed. */
  readonly checkGuess?: (() => void) | undefined
}

/** The review of an access key; undefined: the key is invalid. */
export type Review = (key: string) => Promise<ReviewedKey | undefined>
export type ReviewedKey = {
  readonly caller: Caller
  readonly keyUid: string
  /** Milliseconds until the key expires, if known. A duration, because clocks differ. Absent: never. */
  readonly endsIn?: number | undefined
}

export type ReviewCacheOptions = {
  readonly review: Review
  /** The URL of the management API; default ''. Reviews of another one are not used. */
  readonly service?: () => string
  /** Grows with every change of the management API or of its CA; default 0. Earlier reviews are not used. */
  readonly generation?: () => number
  /** Grows with every received revocation. */
  readonly order: () => number
  readonly now: () => number
}

/** The only failure that may be a guess. */
export class UnknownAccessKey extends ApiError {
  constructor() {
    super(401, 'Unauthorized', 'invalid access key: it is unknown, disabled, expired or deleted')
  }
}

type Kept = { readonly answer: Promise<Principal>; readonly generation: number; readonly order: number; until: number }

const maxEntries = 10_000
const keptFor = 10_000
const refusedFor = 2_000
/** A rotation or a new ttl can invalidate a secret without a revocation. Open streams notice it after this time. */
const reviewEvery = 30_000
/** Concurrent reviews of unknown keys, in total and per address. Further ones get 429. */
const maxConcurrent = 64
const maxPerAddress = 16
/** Keys that were valid before have as many slots of their own, and wait for a free one: unknown keys must not block them. */
const maxWait = 3000

export function openReviewCache(options: ReviewCacheOptions): ReviewCache {
  const { review, service = () => '', generation = () => 0, order, now } = options
  const kept = new Map<string, Kept>()
  /** Rejected keys with the time of their next review. A separate map, because unknown keys must not evict valid ones. */
  const refused = new Map<string, { readonly until: number; readonly generation: number }>()
  /** Keys that were valid before, within the size limit. */
  const validBefore = new Map<string, true>()
  const unknownKeySlots = openSlots()
  const knownKeySlots = openSlotQueue()

  async function requestReview(key: string): Promise<Principal> {
    // Read before the request: changes during the review count as later.
    const [issued, requestedAt, from, generationBefore] = [order(), now(), service(), generation()]
    const found = await review(key)
    if (generationBefore !== generation()) return requestReview(key)
    if (!found) throw new UnknownAccessKey()
    const { caller, keyUid, endsIn = Number.POSITIVE_INFINITY } = found
    const [expires, reviewAt] = [requestedAt + endsIn, requestedAt + reviewEvery]
    return { caller, keyUid, from, generation: generationBefore, jti: undefined, issued, expires, reviewAt }
  }

  return {
    async of(key, digest, { address, checkGuess }) {
      const before = kept.get(digest)
      if (before?.order === order() && before.generation === generation() && now() < before.until) return before.answer
      const rejected = refused.get(digest)
      if (rejected && rejected.generation === generation() && now() < rejected.until) throw new UnknownAccessKey()
      const wasValid = validBefore.has(digest)
      if (!wasValid) checkGuess?.()
      const slot = wasValid ? knownKeySlots.enter() : unknownKeySlots.enter(address)
      if (!slot) throw tooManyRequests()
      const answer = Promise.resolve(slot).then(release => requestReview(key).finally(release))
      const one: Kept = { answer, generation: generation(), order: order(), until: now() + keptFor }
      keep(kept, digest, one)
      try {
        const principal = await answer
        one.until = Math.min(one.until, principal.expires)
        keep(validBefore, digest, true)
        return principal
      } catch (error) {
        if (kept.get(digest) === one) kept.delete(digest)
        if (error instanceof UnknownAccessKey) {
          validBefore.delete(digest)
          keep(refused, digest, { until: now() + refusedFor, generation: generation() })
        }
        throw error
      }
    },
    get generation() {
      return generation()
    },
    get known() {
      return kept.size + refused.size
    },
  }
}

/** Evicts the oldest entry; its key is reviewed again when it is used. */
export function keep<T>(map: Map<string, T>, digest: string, value: T): void {
  map.delete(digest)
  map.set(digest, value)
  if (map.size > maxEntries) for (const oldest of map.keys()) if (map.delete(oldest)) break
}

function openSlots() {
  const taken = new Map<string, number>()
  let all = 0
  return {
    /** undefined: no free slot. Otherwise a function that releases it. */
    enter(address: string): (() => void) | undefined {
      const own = taken.get(address) ?? 0
      if (all >= maxConcurrent || (address !== '' && own >= maxPerAddress)) return undefined
      all++
      taken.set(address, own + 1)
      return () => {
        all--
        const left = (taken.get(address) ?? 1) - 1
        if (left) taken.set(address, left)
        else taken.delete(address)
      }
    },
  }
}

/** Requests without a free slot wait in order, for a short time. */
function openSlotQueue() {
  const queue = new Set<() => void>()
  let taken = 0
  const release = () => {
    const [next] = queue
    if (!next) return void taken--
    queue.delete(next)
    next() // it has the slot now
  }
  return {
    enter(): Promise<() => void> {
      if (taken < maxConcurrent) {
        taken++
        return Promise.resolve(release)
      }
      return new Promise((resolve, reject) => {
        const go = () => {
          clearTimeout(timer)
          resolve(release)
        }
        const timer = setTimeout(() => {
          queue.delete(go)
          reject(tooManyRequests())
        }, maxWait)
        queue.add(go)
      })
    },
  }
}
