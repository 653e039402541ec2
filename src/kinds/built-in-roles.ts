// The roles every server has, and who holds them from the start (D27). auth/built-in.ts repairs them; the gate keeps them as they are.

import type { PolicyRule } from './policy-rule.ts'

const ours = 'management.platform.sh'
const rbac = 'rbac.authorization.k8s.io'
const selfReviews: PolicyRule[] = [
  {
    verbs: ['create'],
    apiGroups: ['authorization.k8s.io'],
    resources: ['selfsubjectaccessreviews', 'selfsubjectrulesreviews'],
  },
  { verbs: ['create'], apiGroups: ['authentication.k8s.io'], resources: ['selfsubjectreviews'] },
]

export const builtInRoles: {
  readonly [name: string]: {
    readonly what: string
    readonly rules: readonly PolicyRule[]
    readonly users?: readonly string[]
    readonly groups?: readonly string[]
  }
} = {
  'platform-admin': {
    what: 'Everything.',
    rules: [
      { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
      { verbs: ['*'], nonResourceURLs: ['*'] },
    ],
    users: ['admin'],
  },
  'platform-user': {
    what: 'What everyone signed in may do: keys and tokens of their own, and questions about themselves.',
    rules: [
      {
        verbs: ['create'],
        apiGroups: [ours],
        resources: ['ownedaccesskeys', 'ownedaccesskeys/rotate', 'directclusterendpointtokens', 'accessexplanations'],
      },
      ...selfReviews,
    ],
    groups: ['system:authenticated'],
  },
  'platform-discovery': {
    what: 'Finding out what is served.',
    rules: [{ verbs: ['get'], nonResourceURLs: ['/', '/api', '/api/*', '/apis', '/apis/*', '/openapi', '/openapi/*'] }],
    groups: ['system:authenticated'],
  },
  'platform-public': {
    what: 'Health, version and issuer metadata, for everyone.',
    rules: [
      {
        verbs: ['get'],
        nonResourceURLs: [
          '/livez',
          '/livez/*',
          '/readyz',
          '/readyz/*',
          '/healthz',
          '/healthz/*',
          '/version',
          '/.well-known/*',
        ],
      },
    ],
    groups: ['system:authenticated', 'system:unauthenticated'],
  },
  'platform-viewer': {
    what: 'Reading everything that is not a secret or a key. Bound to nobody.',
    rules: [
      {
        verbs: ['get', 'list', 'watch'],
        apiGroups: [ours],
        resources: ['teams', 'teams/status', 'teams/permissions', 'tokenrevocations'],
      },
      { verbs: ['get', 'list', 'watch'], apiGroups: [rbac], resources: ['*'] },
      { verbs: ['get', 'list'], apiGroups: [''], resources: ['namespaces'] },
    ],
  },
  'platform-gateway': {
    what: 'What a gateway needs: following revocations, asking about keys, telling of their use. Bound to nobody.',
    rules: [
      { verbs: ['list', 'watch'], apiGroups: [ours], resources: ['tokenrevocations'] },
      { verbs: ['create'], apiGroups: [ours], resources: ['accesskeyactivities'] },
      { verbs: ['create'], apiGroups: ['authentication.k8s.io'], resources: ['tokenreviews'] },
    ],
  },
  'platform-auth-delegator': {
    what: 'Asking about others: token and access reviews, explanations. Bound to nobody.',
    rules: [
      { verbs: ['create'], apiGroups: ['authentication.k8s.io'], resources: ['tokenreviews'] },
      { verbs: ['create'], apiGroups: ['authorization.k8s.io'], resources: ['subjectaccessreviews'] },
      { verbs: ['create'], apiGroups: [ours], resources: ['accessexplanations', 'accessexplanations/others'] },
    ],
  },
}

/** Names of the cluster roles, and of the cluster role bindings that give them to somebody. */
export const isBuiltInName = (name: string): boolean => Object.hasOwn(builtInRoles, name)
