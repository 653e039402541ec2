// Defines the rule of a role: verbs on resources or paths.

import { closed, list, type Static, struct, text } from '../api/schema.ts'

export const policyRule = struct(
  'Verbs that are allowed on resources or paths.',
  {
    verbs: list(text(''), 'Verbs; * is every verb.'),
    apiGroups: list(text(''), 'API groups; "" is the core group, * every group.'),
    resources: list(text(''), 'Plural names, optionally with /subresource; * is all.'),
    resourceNames: list(text(''), 'Names that the rule is limited to. Empty: every name.', { maxItems: 1000 }),
    nonResourceURLs: list(text(''), 'Paths; * only as the whole last segment. Only in a ClusterRole.'),
  },
  ['verbs'],
  closed,
)
export type PolicyRule = Static<typeof policyRule>
