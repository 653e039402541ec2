// Random choices from the seed, for all generators.

import { type Dice, diceOf } from '../seeded-random.ts'

export type Chance = {
  readonly below: Dice
  /** With this probability. */
  readonly is: (probability: number) => boolean
  readonly pick: <T>(list: readonly T[]) => T
  /** undefined: the list is empty. */
  readonly any: <T>(list: readonly T[]) => T | undefined
  /** Up to this many, without repetition. */
  readonly some: <T>(list: readonly T[], most: number) => T[]
  readonly weighted: <T>(list: readonly (readonly [weight: number, value: T])[]) => T
}

export function openChance(seed: string): Chance {
  const below = diceOf(seed)
  const any = <T>(list: readonly T[]) => (list.length ? list[below(list.length)] : undefined)
  return {
    below,
    any,
    is: probability => below(10_000) < probability * 10_000,
    pick: list => any(list) as (typeof list)[number],
    some: (list, most) => [
      ...new Set(Array.from({ length: below(most + 1) }, () => any(list)).filter(one => one !== undefined)),
    ],
    weighted: list => {
      let left = below(list.reduce((sum, [weight]) => sum + weight, 0))
      for (const [weight, value] of list) {
        left -= weight
        if (left < 0) return value
      }
      throw new Error('nothing to choose from')
    },
  }
}
