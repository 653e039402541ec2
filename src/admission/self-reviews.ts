// Responds to reviews about the caller: identity, access and rules (D2, D3).

import type { Admission } from '../api/admission.ts'
import type { Caller } from '../api/caller.ts'
import { badRequest } from '../api/errors.ts'
import type { ObjectOf, Question } from '../api/kind.ts'
import type { Decision, Rules } from '../api/permissions.ts'
import {
  confinesOf,
  extraOf,
  question,
  type SelfSubjectAccessReview,
  type SelfSubjectReview,
  type SelfSubjectRulesReview,
} from '../kinds/self-reviews.ts'

type ReviewDependencies = {
  readonly now: () => number
  /** Expiry of the caller's secret in milliseconds; undefined: never. */
  readonly ownKeyEnds: (caller: Caller) => number | undefined
}

export const selfSubjectReviewAdmission = ({
  now,
  ownKeyEnds,
}: ReviewDependencies): Admission<ObjectOf<typeof SelfSubjectReview>> => ({
  answer: async (next, { caller }) => ({
    ...next,
    status: {
      userInfo: {
        username: caller.username,
        groups: [...caller.groups],
        ...(caller.uid ? { uid: caller.uid } : {}),
        ...(caller.extra
          ? {
              extra: extraOf({
                ...caller.extra,
                // The key does not belong to an impersonated user.
                ...(caller.impersonator === undefined ? confinesOf(caller, ownKeyEnds(caller), now()) : {}),
              }),
            }
          : {}),
      },
    },
  }),
})

type AccessDependencies = { readonly authorize: (caller: Caller, question: Question) => Decision }

export const selfSubjectAccessReviewAdmission = ({
  authorize,
}: AccessDependencies): Admission<ObjectOf<typeof SelfSubjectAccessReview>> => ({
  answer: async (next, { caller }) => {
    const { allowed, reason } = authorize(caller, question(next.spec ?? {}))
    return { ...next, status: { allowed, ...(reason ? { reason } : {}) } }
  },
})

type RulesDependencies = {
  /** The permissions of a caller in a namespace. */
  readonly rulesFor: (caller: Caller, namespace: string) => Rules
}

export const selfSubjectRulesReviewAdmission = ({
  rulesFor,
}: RulesDependencies): Admission<ObjectOf<typeof SelfSubjectRulesReview>> => ({
  answer: async (next, { caller }) => {
    if (!next.spec?.namespace) throw badRequest('no namespace on request')
    const { notes = [], isPartial, resourceRules, nonResourceRules } = rulesFor(caller, next.spec.namespace)
    const problems = [...notes, ...(isPartial ? [partial] : [])]
    const completeness = problems.length
      ? { incomplete: true, evaluationError: problems.join('; ') }
      : { incomplete: false }
    // The rules are those of the stored roles, which can be large: no copy, only the type of the schema.
    const lists = { resourceRules, nonResourceRules } as unknown as Lists
    return { ...next, status: { ...lists, ...completeness } }
  },
})

type Lists = { readonly resourceRules: never[]; readonly nonResourceRules: never[] }
const partial = 'the list is too long and leaves out some rules'
