// Details for the holder of a key whose scope denies SelfSubjectReview. Nobody else receives them (D25).

import type { Caller } from '../../api/caller.ts'
import type { Cause } from '../../api/errors.ts'
import type { Question } from '../../api/kind.ts'
import { SelfSubjectReview } from '../../kinds/self-reviews.ts'
import { actOf } from '../authz/authorize.ts'
import { allows } from '../authz/scope.ts'

export type OwnKeyOptions = {
  /** The expiry of the caller's credential; undefined: never. */
  readonly ends: (caller: Caller) => number | undefined
  readonly now: () => number
}

/** The key's scope and how many seconds it has left. Teams and groups belong to its owner, so they are left out. */
export const ownKeyWith =
  ({ ends, now }: OwnKeyOptions) =>
  (caller: Caller, question: Question): readonly Cause[] | undefined => {
    const { key, scope, impersonator } = caller
    if (!isWhoAmI(question) || key === undefined || scope === undefined) return undefined
    // An impersonator passes the answer on, and the key does not belong to the impersonated user.
    if (impersonator !== undefined) return undefined
    if (allows(scope, { target: 'Management', act: actOf(question) })) return undefined
    const end = ends(caller)
    return [
      { reason: 'KeyScope', message: JSON.stringify(scope) },
      // Relative to now, because clocks differ.
      ...(end === undefined ? [] : [{ reason: 'KeyEndsIn', message: String((end - now()) / 1000) }]),
    ]
  }

const isWhoAmI = (question: Question): boolean =>
  'target' in question &&
  question.verb === 'create' &&
  question.target.resource === SelfSubjectReview.plural &&
  question.target.group === SelfSubjectReview.group
