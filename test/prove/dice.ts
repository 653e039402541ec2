// Numbers that look random and are the same for the same seed.

import { createHash } from 'node:crypto'

export type Dice = (below: number) => number

export function diceOf(seed: string): Dice {
  let count = 0
  return below => createHash('sha256').update(`${seed}/${count++}`).digest().readUInt32LE() % below
}
