// The reviews about the caller: who am I, may I, what may I. They are not stored; the response is the created object (D2, D3).

import type { Caller } from '../api/caller.ts'
import { type FieldError, invalidValue } from '../api/errors.ts'
import { defineKind, type Question } from '../api/kind.ts'
import { flag, list, mapOf, type Static, struct, text } from '../api/schema.ts'

export const review = {
  version: 'v1',
  namespaced: false,
  stored: false,
  verbs: ['create'],
} as const

export const userInfo = struct('Attributes of the caller.', {
  username: text('The name of the user.'),
  uid: text('Identifies the user over time.'),
  groups: list(text(''), 'Groups the user is in.'),
  extra: mapOf(list(text(''), ''), 'What else the authenticator said.'),
})

/** The scope of a key (D25) and its end, in seconds from now because clocks differ. */
export const confinesOf = ({ scope }: Caller, ends: number | undefined, now: number): Extra => ({
  ...(ends === undefined ? {} : { 'authentication.platform.sh/key-ends-in': [String((ends - now) / 1000)] }),
  ...(scope ? { 'authentication.platform.sh/scope': [JSON.stringify(scope)] } : {}),
})

type Extra = { readonly [key: string]: readonly string[] }

export const extraOf = (extra: Extra) =>
  Object.fromEntries(Object.entries(extra).map(([key, values]) => [key, [...values]]))

export const SelfSubjectReview = defineKind({
  ...review,
  group: 'authentication.k8s.io',
  kind: 'SelfSubjectReview',
  plural: 'selfsubjectreviews',
  singular: 'selfsubjectreview',
  description: 'SelfSubjectReview tells who the caller is to the server.',
  status: struct('Who the caller is.', { userInfo }),
  sample: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
})

export const attributes = {
  resourceAttributes: struct('A request on resources.', {
    namespace: text('Namespace; empty means all, or none for what has none.'),
    verb: text('A verb; * means all.'),
    group: text('API group; * means all.'),
    version: text('API version.'),
    resource: text('Plural of the kind; * means all.'),
    subresource: text('Subresource, if any.'),
    name: text('Name; empty means all.'),
    fieldSelector: struct('Confines to a field selector.', { rawSelector: text('The selector.') }),
    labelSelector: struct('Confines to a label selector.', { rawSelector: text('The selector.') }),
  }),
  nonResourceAttributes: struct('A request on a path.', { path: text('The path.'), verb: text('The verb.') }),
}
const accessSpec = struct('The question; one of the two attributes.', attributes)

export const SelfSubjectAccessReview = defineKind({
  ...review,
  group: 'authorization.k8s.io',
  kind: 'SelfSubjectAccessReview',
  plural: 'selfsubjectaccessreviews',
  singular: 'selfsubjectaccessreview',
  description: 'SelfSubjectAccessReview asks whether the caller may do something.',
  spec: accessSpec,
  status: struct('The answer.', {
    allowed: flag('Whether it is allowed.'),
    denied: flag('Whether it is denied whatever others say.'),
    reason: text('Why.'),
    evaluationError: text('What went wrong while judging.'),
  }),
  validate: next => checkAttributes(next.spec),
  sample: {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    spec: { resourceAttributes: { verb: 'get', group: 'management.platform.sh', resource: 'teams' } },
  },
})

export type Attributes = Static<typeof accessSpec>

/** Exactly one of the two attributes must be set. */
export function checkAttributes(spec: Attributes | undefined): FieldError[] {
  const both = spec?.resourceAttributes && spec.nonResourceAttributes
  if (!both && (spec?.resourceAttributes || spec?.nonResourceAttributes)) return []
  return [
    invalidValue(
      'spec.resourceAttributes',
      null,
      'exactly one of nonResourceAttributes or resourceAttributes must be specified',
    ),
  ]
}

export function question({ resourceAttributes: on, nonResourceAttributes: at }: Attributes): Question {
  if (!on) return { verb: at?.verb ?? '', path: at?.path ?? '' }
  const target = { group: on.group ?? '', resource: on.resource ?? '', namespace: on.namespace ?? '' }
  return {
    verb: on.verb ?? '',
    target: {
      ...target,
      ...(on.name ? { name: on.name } : {}),
      ...(on.subresource ? { subresource: on.subresource } : {}),
    },
  }
}

const words = {
  verbs: list(text(''), 'Verbs; * is every verb.'),
  apiGroups: list(text(''), 'API groups; * is every group.'),
  resources: list(text(''), 'Plural names; * is all.'),
  resourceNames: list(text(''), 'Names the rule is confined to.'),
  nonResourceURLs: list(text(''), 'Paths; * is all.'),
}
const resourceRule = struct('What may be done with resources.', {
  verbs: words.verbs,
  apiGroups: words.apiGroups,
  resources: words.resources,
  resourceNames: words.resourceNames,
})
const nonResourceRule = struct('What may be done with paths.', {
  verbs: words.verbs,
  nonResourceURLs: words.nonResourceURLs,
})

export const SelfSubjectRulesReview = defineKind({
  ...review,
  group: 'authorization.k8s.io',
  kind: 'SelfSubjectRulesReview',
  plural: 'selfsubjectrulesreviews',
  singular: 'selfsubjectrulesreview',
  description: 'SelfSubjectRulesReview lists what the caller may do in a namespace.',
  spec: struct('The question.', { namespace: text('The namespace to look at.') }),
  status: struct('The answer.', {
    resourceRules: list(resourceRule, 'What may be done with resources.'),
    nonResourceRules: list(nonResourceRule, 'What may be done with paths.'),
    incomplete: flag('Whether the list may lack rules.'),
    evaluationError: text('What went wrong while listing.'),
  }),
  sample: { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectRulesReview', spec: { namespace: 'default' } },
})
