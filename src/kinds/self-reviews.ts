// Reviews about the caller: identity, access and rules.
// The response is the created object, which is not stored (D2, D3).

import type { Caller } from '../api/caller.ts'
import { type FieldError, invalidValue } from '../api/errors.ts'
import { defineKind, type Question } from '../api/kind.ts'
import { flag, list, longText, mapOf, type Static, struct, text } from '../api/schema.ts'

export const review = {
  version: 'v1',
  namespaced: false,
  stored: false,
  verbs: ['create'],
} as const

export const userInfo = struct('Attributes of the caller.', {
  username: text('The name of the user.'),
  uid: text('Unique identifier of the user.'),
  groups: list(text(''), 'Groups the user is in.'),
  extra: mapOf(list(longText(''), ''), 'Additional attributes from the authenticator.'),
})

/** The scope of the key (D25), and its remaining lifetime in seconds, which does not depend on the client's clock. */
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
  description: 'SelfSubjectReview shows the identity of the caller.',
  status: struct('Identity of the caller.', { userInfo }),
  sample: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
})

export const attributes = {
  resourceAttributes: struct('A request for a resource.', {
    namespace: text('Namespace. Empty means all, or none for cluster-scoped resources.'),
    verb: text('A verb; * means all.'),
    group: text('API group; * means all.'),
    version: text('API version.'),
    resource: text('Plural of the kind; * means all.'),
    subresource: text('Subresource, if any.'),
    name: text('Name; empty means all.'),
    fieldSelector: struct('Limits the request to a field selector.', { rawSelector: longText('The selector.') }),
    labelSelector: struct('Limits the request to a label selector.', { rawSelector: longText('The selector.') }),
  }),
  nonResourceAttributes: struct('A request for a path.', { path: longText('The path.'), verb: text('The verb.') }),
}
const accessSpec = struct('The request to check: one of the two attributes.', attributes)

export const SelfSubjectAccessReview = defineKind({
  ...review,
  group: 'authorization.k8s.io',
  kind: 'SelfSubjectAccessReview',
  plural: 'selfsubjectaccessreviews',
  singular: 'selfsubjectaccessreview',
  description: 'SelfSubjectAccessReview checks whether the caller may do something.',
  spec: accessSpec,
  status: struct('Result of the review.', {
    allowed: flag('Whether it is allowed.'),
    denied: flag('Whether it is denied regardless of other authorizers.'),
    reason: longText('Reason of the decision.'),
    evaluationError: longText('Error during the evaluation.'),
  }),
  validate: next => checkAttributes(next.spec),
  sample: {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    spec: { resourceAttributes: { verb: 'get', group: 'management.platform.sh', resource: 'teams' } },
  },
})

export type Attributes = Static<typeof accessSpec>

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
  resourceNames: list(text(''), 'Names that the rule is limited to.'),
  nonResourceURLs: list(text(''), 'Paths; * is all.'),
}
const resourceRule = struct('Verbs that are allowed on resources.', {
  verbs: words.verbs,
  apiGroups: words.apiGroups,
  resources: words.resources,
  resourceNames: words.resourceNames,
})
const nonResourceRule = struct('Verbs that are allowed on paths.', {
  verbs: words.verbs,
  nonResourceURLs: words.nonResourceURLs,
})

export const SelfSubjectRulesReview = defineKind({
  ...review,
  group: 'authorization.k8s.io',
  kind: 'SelfSubjectRulesReview',
  plural: 'selfsubjectrulesreviews',
  singular: 'selfsubjectrulesreview',
  description: 'SelfSubjectRulesReview lists the permissions of the caller in a namespace.',
  spec: struct('The namespace to check.', { namespace: text('Name of the namespace.') }),
  status: struct('Result of the review.', {
    resourceRules: list(resourceRule, 'Rules about resources.'),
    nonResourceRules: list(nonResourceRule, 'Rules about paths.'),
    incomplete: flag('Whether the list may lack rules.'),
    evaluationError: longText('Error during the evaluation.'),
  }),
  sample: { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectRulesReview', spec: { namespace: 'default' } },
})
