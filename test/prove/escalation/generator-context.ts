// What the generators of worlds and steps share: the world, chance, who the attackers are, and which dangers are switched on.

import type { Prover } from './prover.ts'
import type { Chance } from './seeded-choices.ts'
import type { Family } from './step.ts'
import type { Bits } from './universe.ts'

export type Stage = {
  readonly prover: Prover
  readonly chance: Chance
  /** Users who are attackers; the others do nothing. */
  readonly attackers: readonly string[]
  /** Dangers that steps may try. */
  readonly enabled: ReadonlySet<Family>
  /** Dangers that this world has the rights and objects for. */
  readonly prepared: ReadonlySet<Family>
  /** What the author of a step may do: most of what it gives away, it has. */
  readonly holds?: Bits
}
