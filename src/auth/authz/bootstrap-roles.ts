// Makes the built-in roles and bindings what they are meant to be when the server starts (D27).

import { canonical } from '../../api/codec.ts'
import type { Kind } from '../../api/kind.ts'
import type { Json, JsonObject } from '../../api/object.ts'
import type { Resources } from '../../api/resources.ts'
import { builtInRoles } from '../../kinds/built-in-roles.ts'
import { ClusterRole, ClusterRoleBinding } from '../../kinds/rbac.ts'

const rbac = 'rbac.authorization.k8s.io'

/** Makes the built-in roles and bindings what they are meant to be; what is right already is left alone. */
export async function repairBuiltIns(internalClient: Resources): Promise<void> {
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
}

type Wanted = JsonObject & {
  readonly metadata: { readonly name: string; readonly labels: JsonObject; readonly annotations: JsonObject }
}

/** Rules, subjects, labels and owners are exactly those of the built-in; annotations of others stay. */
async function repair(internalClient: Resources, kind: Kind, wanted: Wanted): Promise<void> {
  const ref = { namespace: '', name: wanted.metadata.name }
  const there = await internalClient.get(kind, ref).then(
    document => document.object as unknown as JsonObject & { readonly metadata: JsonObject },
    error => {
      if ((error as { code?: number }).code !== 404) throw error
    },
  )
  if (!there) return void (await internalClient.create(kind, '', wanted, { fieldManager: 'platform' }))
  // An earlier version let a finalizer hold one that is being deleted: it goes, and comes back whole.
  if (there.metadata['deletionTimestamp'] !== undefined) {
    await internalClient.delete(kind, ref, { gracePeriodSeconds: 0 })
    const body = { metadata: { finalizers: null } }
    await internalClient.patch(kind, ref, { type: 'merge', body }, { fieldManager: 'platform' }).catch(error => {
      if ((error as { code?: number }).code !== 404) throw error
    })
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
