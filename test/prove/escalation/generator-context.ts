// Shared by the generators of objects and steps: the objects, the random source, the attackers, and the enabled attacks.

import type { Prover } from './prover.ts'
import type { Chance } from './seeded-choices.ts'
import type { Family } from './step.ts'
import type { Bits } from './universe.ts'

export type Stage = {
  readonly prover: Prover
  readonly chance: Chance
  /** Users who are attackers. The others are passive. */
  readonly attackers: readonly string[]
  /** Attacks that steps may try. */
  readonly enabled: ReadonlySet<Family>
  /** Attacks for which this world has the permissions and objects. */
  readonly prepared: ReadonlySet<Family>
  /** The permissions of the actor, who has most of what it grants. */
  readonly holds?: Bits
}

type Rate = { readonly often: number; readonly seldom: number }

/** How often to take a step of an attack: more often in a world that is prepared for it. */
export const rate = ({ enabled, prepared }: Stage, danger: Family, { often, seldom }: Rate): number =>
  prepared.has(danger) ? often : enabled.has(danger) ? seldom : 0
