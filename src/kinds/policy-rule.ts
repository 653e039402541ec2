// A rule of a role: verbs on resources or paths.

import { closed, list, type Static, struct, text } from '../api/schema.ts'

export const policyRule = struct(
  'What may be done with what.',
  {
    verbs: list(text(''), 'Verbs; * is every verb.'),
    apiGroups: list(text(''), 'API groups; "" is the core group, * every group.'),
    resources: list(text(''), 'Plural names, with /subresource where one is meant; * is all.'),
    resourceNames: list(text(''), 'Names the rule is confined to. Empty: every name.', { maxItems: 1000 }),
    nonResourceURLs: list(text(''), 'Paths; a trailing * only as the whole last step. Only in a ClusterRole.'),
  },
  ['verbs'],
  closed,
)
export type PolicyRule = Static<typeof policyRule>
