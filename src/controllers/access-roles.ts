// Mirrors `access` entries and the cluster roles of teams as roles and bindings (D26). They are informational: the
// authorizer reads the object itself, so mirrors grant nothing. They are deleted with their object.

import { createHash } from 'node:crypto'
import { canonical } from '../api/codec.ts'
import type { Kind } from '../api/kind.ts'
import type { Json, JsonObject, OwnerReference, Ref, Resource } from '../api/object.ts'
import { type Resources, refOf } from '../api/resources.ts'
import { forEachInSlices } from '../api/time-slices.ts'
import { ClusterRole, ClusterRoleBinding, mirrorLabel, Role, RoleBinding } from '../kinds/rbac.ts'
import { mentions, startInformer } from '../reconcile/informer.ts'
import { startLoop } from '../reconcile/work-queue.ts'

export type AccessRolesOptions = {
  readonly resources: Resources
  /** Kinds whose objects have owners and access entries. */
  readonly kinds: readonly Kind[]
  readonly failed: (what: string, error: unknown) => void
}

type Wanted = {
  readonly kind: Kind
  readonly object: JsonObject & { readonly metadata: { readonly name: string; readonly namespace?: string } }
}

const rbac = 'rbac.authorization.k8s.io'

export function startAccessRoles({ resources, kinds, failed }: AccessRolesOptions): {
  readonly ready: Promise<void>
  idle(): Promise<void>
  stop(): Promise<void>
} {
  const queued = new Map<string, { readonly kind: Kind; readonly ref: Ref }>()
  const loop = startLoop({
    reconcile: async slot => {
      const one = queued.get(slot)
      if (one) await reconcile(resources, one.kind, one.ref)
      if (queued.get(slot) === one) queued.delete(slot)
      return undefined
    },
    failed: (slot, error) => failed(`mirroring access of ${slot}`, error),
  })
  const informers = kinds.map(kind =>
    startInformer({
      resources,
      kind,
      counts: mentions('access', 'clusterRoles'),
      keep: fingerprint,
      failed: error => failed(`watching ${kind.plural}`, error),
      changed: (ref, now = '', before = '') => {
        if (now === before) return
        const slot = `${kind.plural}/${ref.namespace}/${ref.name}`
        queued.set(slot, { kind, ref })
        loop.add(slot)
      },
    }),
  )
  return {
    ready: Promise.all(informers.map(informer => informer.ready)).then(() => {}),
    idle: loop.idle,
    async stop() {
      for (const informer of informers) informer.stop()
      await loop.stop()
    },
  }
}

/** Another text after every change that the mirrors depend on; empty: no mirrors. */
function fingerprint({ metadata, spec }: Resource): string {
  const { access = [], clusterRoles = [] } = (spec ?? {}) as Spec
  if (metadata.deletionTimestamp || access.length + clusterRoles.length === 0) return ''
  return createHash('sha256')
    .update(JSON.stringify([metadata.uid, access, clusterRoles]))
    .digest('base64')
}

const ownerOf = (kind: Kind, { metadata }: Resource): OwnerReference => ({
  apiVersion: kind.apiVersion,
  kind: kind.kind,
  name: metadata.name ?? '',
  uid: metadata.uid ?? '',
  controller: true,
})

type Spec = {
  readonly access?: readonly {
    readonly name?: string
    readonly verbs?: readonly string[]
    readonly subresources?: readonly string[]
    readonly users?: readonly string[]
    readonly teams?: readonly string[]
  }[]
  readonly clusterRoles?: readonly { readonly name?: string }[]
}

function wantedBy(kind: Kind, object: Resource): readonly Wanted[] {
  if (object.metadata.deletionTimestamp) return []
  const { access = [], clusterRoles = [] } = (object.spec ?? {}) as Spec
  const { name = '' } = object.metadata
  const metadataOf = (own: string) => ({
    name: own,
    ...(object.metadata.namespace ? { namespace: object.metadata.namespace } : {}),
    labels: { [mirrorLabel]: object.metadata.uid ?? '' },
    ownerReferences: [ownerOf(kind, object)] as unknown as Json,
  })
  const [roleKind, bindingKind] = kind.namespaced ? [Role, RoleBinding] : [ClusterRole, ClusterRoleBinding]
  const names = entryNames(access)
  const mirrored = access.flatMap((entry, index): Wanted[] => {
    const own = `access:${kind.plural}:${name}:${names[index]}`
    const resources = [kind.plural, ...(entry.subresources ?? []).map(sub => `${kind.plural}/${sub}`)]
    const rules = [{ verbs: [...(entry.verbs ?? [])], apiGroups: [kind.group], resources, resourceNames: [name] }]
    const subjects = [
      ...(entry.users ?? []).map(user =>
        user === '*' ? group('system:authenticated') : { apiGroup: rbac, kind: 'User', name: user },
      ),
      ...(entry.teams ?? []).map(team => group(`platform:team:${team}`)),
    ]
    const roleRef = { apiGroup: rbac, kind: roleKind.kind, name: own }
    return [
      { kind: roleKind, object: { metadata: metadataOf(own), rules } },
      { kind: bindingKind, object: { metadata: metadataOf(own), roleRef, subjects } },
    ]
  })
  const bound = clusterRoles.map(({ name: role = '' }) => ({
    kind: ClusterRoleBinding,
    object: {
      metadata: metadataOf(`team:${name}:${role}`),
      roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: role },
      subjects: [group(`platform:team:${name}`)],
    },
  }))
  return [...mirrored, ...bound]
}

const maxEntryName = 60

/** Entries may repeat a name, and use characters that names of roles cannot have (D26). No escaped name has a colon. */
function entryNames(access: NonNullable<Spec['access']>): readonly string[] {
  const used = new Set<string>()
  return access.map((entry, index) => {
    const escaped = (entry.name || `${index}`).replace(
      /[^-A-Za-z0-9_.]/gu,
      one => `~${one.codePointAt(0)?.toString(16)}~`,
    )
    const isUnique = escaped.length <= maxEntryName && !used.has(escaped)
    const own = isUnique ? escaped : `${escaped.slice(0, maxEntryName)}:${index}`
    used.add(own)
    return own
  })
}

const group = (name: string) => ({ apiGroup: rbac, kind: 'Group', name })

/** Makes what is wanted, mends what differs, removes what is not wanted any more. */
async function reconcile(resources: Resources, kind: Kind, ref: Ref): Promise<void> {
  const owner = await resources.get(kind, ref).then(({ object }) => object, notThere)
  if (!owner) return // the garbage collector deletes its mirrors
  const wanted = wantedBy(kind, owner)
  for (const own of [Role, ClusterRole, RoleBinding, ClusterRoleBinding]) {
    const { items } = await resources.list(own, { labelSelector: `${mirrorLabel}=${owner.metadata.uid}` })
    // The label is the server's to write; what an earlier version let others label is not ours to change.
    const ours = items.filter(({ object }) => isControlledBy(object, owner.metadata.uid))
    const there = new Map(ours.map(item => [item.object.metadata.name, item.object]))
    await forEachInSlices(
      wanted.filter(each => each.kind === own),
      async one => {
        const current = there.get(one.object.metadata.name)
        there.delete(one.object.metadata.name)
        if (!current) await resources.create(own, ref.namespace, one.object, { fieldManager: 'access-roles' })
        else await repair(resources, own, current, one.object)
      },
    )
    await forEachInSlices(there.values(), async object => void (await resources.delete(own, refOf(object))))
  }
}

const isControlledBy = ({ metadata }: Resource, uid: string | undefined) =>
  metadata.ownerReferences?.some(one => one.controller === true && one.uid === uid) === true

async function repair(resources: Resources, kind: Kind, current: Resource, wanted: Wanted['object']): Promise<void> {
  const { metadata: _, ...fields } = wanted
  const now = current as unknown as JsonObject
  if (Object.entries(fields).every(([field, value]) => canonical(value) === canonical(now[field] ?? null))) return
  await resources.update(kind, refOf(current), { ...now, ...fields } as Json, { fieldManager: 'access-roles' })
}

function notThere(error: { code?: number }): undefined {
  if (error.code !== 404) throw error
}
