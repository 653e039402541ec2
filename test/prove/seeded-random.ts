// Pseudo-random numbers from a seed.

import { createHash } from 'node:crypto'

export type Dice = (below: number) => number

/** The seed is hashed once. Each number then takes a few arithmetic steps (mulberry32). */
export function diceOf(seed: string): Dice {
  let state = createHash('sha256').update(seed).digest().readUInt32LE()
  return below => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}
