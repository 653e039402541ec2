// Defines the built-in roles and their default bindings (D27).

import { agentGroup } from './cluster-desired.ts'
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
    what: 'Permissions of every authenticated user: their own keys and tokens, self reviews, and previews of patches.',
    rules: [
      {
        verbs: ['create'],
        apiGroups: [ours],
        resources: [
          'ownedaccesskeys',
          'ownedaccesskeys/rotate',
          'directclusterendpointtokens',
          'accessexplanations',
          'patchpreviews',
        ],
      },
      ...selfReviews,
    ],
    groups: ['system:authenticated'],
  },
  'platform-discovery': {
    what: 'API discovery.',
    rules: [
      { verbs: ['get'], nonResourceURLs: ['/', '/api', '/api/*', '/apis', '/apis/*', '/openapi', '/openapi/*'] },
      // Always empty.
      { verbs: ['list'], apiGroups: ['apiextensions.k8s.io'], resources: ['customresourcedefinitions'] },
    ],
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
    what: 'Read access to everything except secrets and keys. Not bound by default.',
    rules: [
      {
        verbs: ['get', 'list', 'watch'],
        apiGroups: [ours],
        resources: [
          'teams',
          'teams/status',
          'teams/permissions',
          'tokenrevocations',
          'users',
          'clusters',
          'clusters/status',
        ],
      },
      { verbs: ['get', 'list', 'watch'], apiGroups: [rbac], resources: ['*'] },
      { verbs: ['get', 'list'], apiGroups: [''], resources: ['namespaces'] },
    ],
  },
  'platform-gateway': {
    what: 'Permissions of a gateway: watch revocations, review tokens, report key activity. Bound to the agents of connected clusters.',
    rules: [
      { verbs: ['list', 'watch'], apiGroups: [ours], resources: ['tokenrevocations'] },
      { verbs: ['create'], apiGroups: [ours], resources: ['accesskeyactivities'] },
      { verbs: ['create'], apiGroups: ['authentication.k8s.io'], resources: ['tokenreviews'] },
    ],
    groups: [agentGroup],
  },
  'platform-auth-delegator': {
    what: 'Token reviews, access reviews and explanations for other users. Not bound by default.',
    rules: [
      { verbs: ['create'], apiGroups: ['authentication.k8s.io'], resources: ['tokenreviews'] },
      { verbs: ['create'], apiGroups: ['authorization.k8s.io'], resources: ['subjectaccessreviews'] },
      { verbs: ['create'], apiGroups: [ours], resources: ['accessexplanations', 'accessexplanations/others'] },
    ],
  },
}

/** Binds platform-admin to the groups of the setting auth.adminGroups. */
export const adminGroupsBinding = 'platform-admin-groups'

/** Names of the built-in cluster roles, and of their cluster role bindings. */
export const isBuiltInName = (name: string): boolean => name === adminGroupsBinding || Object.hasOwn(builtInRoles, name)
