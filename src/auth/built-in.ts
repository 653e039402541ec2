// The roles every server has, and who holds them from the start (D27). Repaired when the server starts.

import { canonical } from '../api/codec.ts'
import type { Kind } from '../api/kind.ts'
import type { Json, JsonObject } from '../api/object.ts'
import type { Resources } from '../api/resources.ts'
import { ClusterRole, ClusterRoleBinding, type PolicyRule } from '../kinds/rbac.ts'

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

const roles: {
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

/** Makes the built-in roles and bindings what they are meant to be; what is right already is left alone. */
export async function repairBuiltIns(inside: Resources): Promise<void> {
  for (const [name, { what, rules, users = [], groups = [] }] of Object.entries(roles)) {
    const metadata = {
      name,
      annotations: { 'platform.sh/description': what },
      labels: { 'platform.sh/built-in': 'true' },
    }
    await repair(inside, ClusterRole, { metadata, rules: rules as unknown as Json })
    const subjects = [
      ...users.map(user => ({ apiGroup: rbac, kind: 'User', name: user })),
      ...groups.map(group => ({ apiGroup: rbac, kind: 'Group', name: group })),
    ]
    if (subjects.length)
      await repair(inside, ClusterRoleBinding, {
        metadata,
        roleRef: { apiGroup: rbac, kind: 'ClusterRole', name },
        subjects,
      })
  }
}

async function repair(
  inside: Resources,
  kind: Kind,
  wanted: JsonObject & { readonly metadata: { readonly name: string } },
): Promise<void> {
  const ref = { namespace: '', name: wanted.metadata.name }
  const there = await inside.get(kind, ref).then(
    document =>
      document.object as unknown as JsonObject & {
        metadata: { resourceVersion: string; labels?: Json; annotations?: Json }
      },
    error => {
      if ((error as { code?: number }).code !== 404) throw error
    },
  )
  if (!there) return void (await inside.create(kind, '', wanted, { fieldManager: 'platform' }))
  const { metadata, ...fields } = wanted
  const same = Object.entries(fields).every(([field, value]) => canonical(value) === canonical(there[field] ?? null))
  if (same) return
  // What is bound cannot be changed in place: such a binding is made anew.
  if (fields['roleRef'] && canonical(fields['roleRef']) !== canonical(there['roleRef'] ?? null)) {
    await inside.delete(kind, ref)
    return void (await inside.create(kind, '', wanted, { fieldManager: 'platform' }))
  }
  await inside.update(
    kind,
    ref,
    { ...there, ...fields, metadata: { ...there.metadata, ...metadata } } as unknown as Json,
    { fieldManager: 'platform' },
  )
}
