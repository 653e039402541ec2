// Limits concurrent requests and the request rate per identity, so that no key starves the others (429).

export type Traffic = 'read' | 'write' | 'watch'

export interface InflightLimits {
  /** undefined: over the limit. Otherwise a function to call once when the request ends. */
  enter(identity: string, traffic: Traffic): (() => void) | undefined
  /** Changes the limits. Requests in flight continue and count, even above the new limits. */
  resize(to: Pick<InflightLimitsOptions, 'max' | 'share'>): void
  readonly current: { readonly [traffic in Traffic]: number }
  readonly stats: Stats
}

type Stats = {
  /** Rejections, by cause: the server is full, the identity's share is used up, or its rate is too high. */
  readonly full: number
  readonly share: number
  readonly rate: number
  readonly identities: number
}

export type InflightLimitsOptions = {
  /** Maximum concurrent requests of all identities together. */
  readonly max: { readonly [traffic in Traffic]: number }
  /** The part of `max` that one identity may use, above 0 and up to 1. */
  readonly share: number
  /** Requests per second of one identity, and the burst after a pause. 0: unlimited. */
  readonly rate: number
  readonly burst: number
  readonly now: () => number
}

type Identity = {
  readonly name: string
  readonly inFlight: { [traffic in Traffic]: number }
  /** Created once, so that `enter` allocates nothing. */
  readonly release: { readonly [traffic in Traffic]: () => void }
  tokens: number
  seen: number
}

const crowded = 0.8
const minute = 60_000

export function openInflightLimits({ rate, burst, now, ...first }: InflightLimitsOptions): InflightLimits {
  const current = { read: 0, write: 0, watch: 0 }
  /** Number of identities with requests in flight. */
  const holders = { read: 0, write: 0, watch: 0 }
  let { max } = first
  let each = shareOf(max, first.share)
  let near = shareOf(max, crowded)
  const known = new Map<string, Identity>()
  // A forgotten identity returns with a full bucket, so only identities with a full bucket are forgotten.
  const idleAfter = Math.max(minute, rate > 0 ? (burst / rate) * 1000 : 0)
  const stats = {
    full: 0,
    share: 0,
    rate: 0,
    get identities() {
      return known.size
    },
  }

  const meet = (name: string, time: number): Identity => {
    for (let looked = 0; looked < 2; looked++) forgetIdle(known, time - idleAfter)
    const inFlight = { read: 0, write: 0, watch: 0 }
    const releaserOf = (traffic: Traffic) => () => {
      current[traffic]--
      inFlight[traffic]--
      if (inFlight[traffic] === 0) holders[traffic]--
    }
    const release = { read: releaserOf('read'), write: releaserOf('write'), watch: releaserOf('watch') }
    const one = { name, inFlight, release, tokens: burst, seen: time }
    known.set(name, one)
    return one
  }
  /** An identity above its fair share is rejected first, so that those below theirs get the remaining capacity. */
  const isTooMuch = (inFlight: number, traffic: Traffic): boolean => {
    if (inFlight >= each[traffic]) return true
    if (current[traffic] < near[traffic] || inFlight === 0) return false
    return inFlight >= max[traffic] / holders[traffic]
  }

  return {
    current,
    stats,
    resize(to) {
      max = to.max
      each = shareOf(max, to.share)
      near = shareOf(max, crowded)
    },
    enter(name, traffic) {
      const time = now()
      const one = known.get(name) ?? meet(name, time)
      if (rate > 0) one.tokens = Math.min(burst, one.tokens + (Math.max(0, time - one.seen) * rate) / 1000)
      one.seen = time
      if (current[traffic] >= max[traffic]) {
        stats.full++
        return undefined
      }
      const inFlight = one.inFlight[traffic]
      if (isTooMuch(inFlight, traffic)) {
        stats.share++
        return undefined
      }
      if (rate > 0) {
        if (one.tokens < 1) {
          stats.rate++
          return undefined
        }
        one.tokens--
      }
      if (inFlight === 0) holders[traffic]++
      one.inFlight[traffic]++
      current[traffic]++
      return one.release[traffic]
    },
  }
}

const shareOf = (max: InflightLimitsOptions['max'], part: number) => ({
  read: Math.max(1, Math.floor(max.read * part)),
  write: Math.max(1, Math.floor(max.write * part)),
  watch: Math.max(1, Math.floor(max.watch * part)),
})

/** Checks the identities that were checked longest ago; busy ones go to the end. Two checks per new identity keep the map short. */
function forgetIdle(known: Map<string, Identity>, before: number): void {
  for (const [name, one] of known) {
    known.delete(name)
    const { read, write, watch } = one.inFlight
    if (read || write || watch || one.seen > before) known.set(name, one)
    return
  }
}
