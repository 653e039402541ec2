// What is under way, with whom it is for: cut when their token or key counts no more, or when nobody can say whether it does (D33).

import { type ApiError, unauthorized, unavailable } from '../api/errors.ts'
import type { Principal } from './principal.ts'
import type { Revocations } from './revocations.ts'

export interface Streams {
  /** Answers how to leave. */
  enter(one: Underway): () => void
  /** Looks at all of them; called when something was revoked, and every second for what runs out. */
  look(): void
  readonly open: number
  readonly cut: number
  /** Ends those that never end by themselves: the program is about to. */
  endLong(): void
  /** Ends all of them. */
  close(): void
}

export type Underway = {
  readonly principal: Principal
  readonly isLong: boolean
  /** Ends it; who was told nothing yet is told why. */
  readonly cut: (why: ApiError) => void
}

export type StreamsOptions = {
  readonly revocations: () => Pick<Revocations, 'whyNot'> | undefined
  /** Whether nothing is known of revocations for so long that nothing may go on. */
  readonly isBlind: () => boolean
  readonly now: () => number
}

const lookEvery = 1000

export function openStreams({ revocations, isBlind, now }: StreamsOptions): Streams {
  const under = new Set<Underway>()
  let count = 0
  const look = () => {
    const blind = isBlind()
    const known = revocations()
    for (const one of under) {
      if (!blind && now() < one.principal.expires && known?.whyNot(one.principal) === undefined) continue
      count++
      end(
        one,
        blind ? unavailable('nothing is known of revocations any more') : unauthorized('the token counts no more'),
      )
    }
  }
  const end = (one: Underway, why: ApiError) => {
    under.delete(one)
    one.cut(why)
  }
  const leaving = () => unavailable('the gateway is about to end; come again')
  const timer = setInterval(look, lookEvery).unref()
  return {
    enter(one) {
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
    endLong() {
      for (const one of under) if (one.isLong) end(one, leaving())
    },
    close() {
      clearInterval(timer)
      for (const one of under) end(one, leaving())
    },
  }
}
