// What is under way, with whom it is for: cut when their token or key counts no more, or when nobody can say whether it does (D33).

import type { Principal } from './principal.ts'
import type { Revocations } from './revocations.ts'

export interface Streams {
  /** `cut` ends it. Answers how to leave. */
  enter(principal: Principal, cut: () => void): () => void
  /** Looks at all of them; called when something was revoked, and every second for what runs out. */
  look(): void
  readonly open: number
  readonly cut: number
  /** Ends all of them. */
  close(): void
}

export type StreamsOptions = {
  readonly revocations: () => Pick<Revocations, 'whyNot'> | undefined
  /** Whether nothing is known of revocations for so long that nothing may go on. */
  readonly isBlind: () => boolean
  readonly now: () => number
}

const lookEvery = 1000

export function openStreams({ revocations, isBlind, now }: StreamsOptions): Streams {
  const under = new Set<{ readonly principal: Principal; readonly cut: () => void }>()
  let count = 0
  const look = () => {
    const blind = isBlind()
    const known = revocations()
    for (const one of under) {
      if (!blind && now() < one.principal.expires && known?.whyNot(one.principal) === undefined) continue
      under.delete(one)
      count++
      one.cut()
    }
  }
  const timer = setInterval(look, lookEvery).unref()
  return {
    enter(principal, cut) {
      const one = { principal, cut }
      under.add(one)
      return () => void under.delete(one)
    },
    look,
    get open() {
      return under.size
    },
    get cut() {
      return count
    },
    close() {
      clearInterval(timer)
      for (const one of under) one.cut()
      under.clear()
    },
  }
}
