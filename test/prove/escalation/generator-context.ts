// Shared by the generators of objects and steps: the objects, the random source, the attackers, and the enabled attacks.

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
  /** The permissions of the author of a step: it has most of what it grants. */
  readonly holds?: Bits
}
