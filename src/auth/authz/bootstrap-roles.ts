// Repairs the built-in roles and bindings when the server starts (D27).

import { canonical } from '../../api/codec.ts'
import { ApiError, ignoreNotFound } from '../../api/errors.ts'
import type { Kind } from '../../api/kind.ts'
import type { Json, JsonObject } from '../../api/object.ts'
import type { Resources } from '../../api/resources.ts'
import { adminGroupsBinding, builtInRoles } from '../../kinds/built-in-roles.ts'
import { ClusterRole, ClusterRoleBinding } from '../../kinds/rbac.ts'

const rbac = 'rbac.authorization.k8s.io'

/** Creates or repairs the built-in roles and bindings. Correct ones are not written. `adminGroups`: groups of administrators. */
export async function repairBuiltIns(internalClient: Resources, adminGroups: readonly string[] = []): Promise<void> {
  for (const [name, { what, rules, users = [], groups = [] }] of Object.entries(builtInRoles)) {
    const metadata = {
      name,
      annotations: { 'platform.sh/description': what },
      labels: { 'platform.sh/built-in': 'true' },
    }
    await repair(internalClient, ClusterRole, { metadata, rules: rules as unknown as Json })
    const subjects = [
      ...users.map(user => ({ apiGroup: rbac, kind: 'User', name: user })),
      ...groups.map(group => ({ apiGroup: rbac, kind: 'Group', name: group })),
    ]
    if (subjects.length)
      await repair(internalClient, ClusterRoleBinding, {
        metadata,
        roleRef: { apiGroup: rbac, kind: 'ClusterRole', name },
        subjects,
      })
  }
  await repairAdminGroups(internalClient, adminGroups)
}

/** The binding of the setting auth.adminGroups. */
async function repairAdminGroups(internalClient: Resources, groups: readonly string[]): Promise<void> {
  const ref = { namespace: '', name: adminGroupsBinding }
  if (groups.length === 0) return internalClient.delete(ClusterRoleBinding, ref).then(() => {}, ignoreNotFound)
  await repair(internalClient, ClusterRoleBinding, {
    metadata: {
      name: adminGroupsBinding,
      annotations: { 'platform.sh/description': 'The groups of the setting auth.adminGroups.' },
      labels: { 'platform.sh/built-in': 'true' },
    },
    roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: 'platform-admin' },
    subjects: [...new Set(groups)].map(name => ({ apiGroup: rbac, kind: 'Group', name })),
  })
}

type Wanted = JsonObject & {
  readonly metadata: { readonly name: string; readonly labels: JsonObject; readonly annotations: JsonObject }
}

const maxAttempts = 5

/** Another replica that starts at the same time may repair the same object. */
async function repair(internalClient: Resources, kind: Kind, wanted: Wanted): Promise<void> {
  for (let attempt = 1; ; attempt++)
    try {
      return await repairOnce(internalClient, kind, wanted)
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 409 || attempt === maxAttempts) throw error
    }
}

/** Rules, subjects, labels and owners become exactly those of the built-in. Other annotations stay. */
async function repairOnce(internalClient: Resources, kind: Kind, wanted: Wanted): Promise<void> {
  const ref = { namespace: '', name: wanted.metadata.name }
  const there = await internalClient
    .get(kind, ref)
    .then(document => document.object as unknown as JsonObject & { readonly metadata: JsonObject }, ignoreNotFound)
  if (!there) return void (await internalClient.create(kind, '', wanted, { fieldManager: 'platform' }))
  // An earlier version allowed finalizers on built-in roles. One that is being deleted is removed and created again.
  if (there.metadata['deletionTimestamp'] !== undefined) {
    await internalClient.delete(kind, ref, { gracePeriodSeconds: 0 })
    const body = { metadata: { finalizers: null } }
    await internalClient.patch(kind, ref, { type: 'merge', body }, { fieldManager: 'platform' }).catch(ignoreNotFound)
    return void (await internalClient.create(kind, '', wanted, { fieldManager: 'platform' }))
  }
  const { ownerReferences: _, finalizers: __, ...kept } = there.metadata
  const annotations = { ...(kept['annotations'] as JsonObject | undefined), ...wanted.metadata.annotations }
  const metadata = { ...kept, labels: wanted.metadata.labels, annotations }
  const next: JsonObject = { apiVersion: there['apiVersion'] as Json, kind: there['kind'] as Json, ...wanted, metadata }
  if (canonical(next) === canonical(there)) return
  // The roleRef of a binding cannot be changed in place.
  if (canonical(next['roleRef'] ?? null) !== canonical(there['roleRef'] ?? null)) {
    await internalClient.delete(kind, ref)
    return void (await internalClient.create(kind, '', wanted, { fieldManager: 'platform' }))
  }
  await internalClient.update(kind, ref, next, { fieldManager: 'platform' })
}
