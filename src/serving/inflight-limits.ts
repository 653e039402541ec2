// How much one identity may have under way, and how fast it may come, so that no key starves the others (429).

export type Traffic = 'read' | 'write' | 'watch'

export interface InflightLimits {
  /** undefined: too much. Otherwise the way out, to be called once. */
  enter(identity: string, traffic: Traffic): (() => void) | undefined
  /** From now on; what is under way goes on and counts, however much it is. */
  resize(to: Pick<FairOptions, 'most' | 'share'>): void
  readonly current: { readonly [traffic in Traffic]: number }
  readonly stats: Stats
}

type Stats = {
  /** Refused because the server is full, because of the identity's own share, or because it comes too fast. */
  readonly full: number
  readonly share: number
  readonly rate: number
  readonly identities: number
}

export type FairOptions = {
  /** Requests under way at once, of everyone together. */
  readonly most: { readonly [traffic in Traffic]: number }
  /** Which part of that, above 0 and up to 1, one identity may hold; what is left is for the others. */
  readonly share: number
  /** Requests a second of one identity, and how many may come at once after a pause. 0: any number. */
  readonly rate: number
  readonly burst: number
  readonly now: () => number
}

type Identity = {
  readonly name: string
  readonly held: { [traffic in Traffic]: number }
  /** Made once, so that entering allocates nothing. */
  readonly leave: { readonly [traffic in Traffic]: () => void }
  tokens: number
  seen: number
}

const crowded = 0.8
const minute = 60_000

export function openInflightLimits({ rate, burst, now, ...first }: FairOptions): InflightLimits {
  const current = { read: 0, write: 0, watch: 0 }
  /** How many identities hold anything. */
  const holders = { read: 0, write: 0, watch: 0 }
  let { most } = first
  let each = shareOf(most, first.share)
  let near = shareOf(most, crowded)
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
    const held = { read: 0, write: 0, watch: 0 }
    const leaving = (traffic: Traffic) => () => {
      current[traffic]--
      held[traffic]--
      if (held[traffic] === 0) holders[traffic]--
    }
    const leave = { read: leaving('read'), write: leaving('write'), watch: leaving('watch') }
    const one = { name, held, leave, tokens: burst, seen: time }
    known.set(name, one)
    return one
  }
  /** Above its fair share an identity is refused first, while what is left is kept for those below theirs. */
  const isTooMuch = (held: number, traffic: Traffic): boolean => {
    if (held >= each[traffic]) return true
    if (current[traffic] < near[traffic] || held === 0) return false
    return held >= most[traffic] / holders[traffic]
  }

  return {
    current,
    stats,
    resize(to) {
      most = to.most
      each = shareOf(most, to.share)
      near = shareOf(most, crowded)
    },
    enter(name, traffic) {
      const time = now()
      const one = known.get(name) ?? meet(name, time)
      if (rate > 0) one.tokens = Math.min(burst, one.tokens + (Math.max(0, time - one.seen) * rate) / 1000)
      one.seen = time
      if (current[traffic] >= most[traffic]) {
        stats.full++
        return undefined
      }
      const held = one.held[traffic]
      if (isTooMuch(held, traffic)) {
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
      if (held === 0) holders[traffic]++
      one.held[traffic]++
      current[traffic]++
      return one.leave[traffic]
    },
  }
}

const shareOf = (most: FairOptions['most'], part: number) => ({
  read: Math.max(1, Math.floor(most.read * part)),
  write: Math.max(1, Math.floor(most.write * part)),
  watch: Math.max(1, Math.floor(most.watch * part)),
})

/** Checks the identities that were checked longest ago; busy ones go to the end. Two checks per new identity keep the map short. */
function forgetIdle(known: Map<string, Identity>, before: number): void {
  for (const [name, one] of known) {
    known.delete(name)
    const { read, write, watch } = one.held
    if (read || write || watch || one.seen > before) known.set(name, one)
    return
  }
}
