// Plans the writes that make the generated roles and bindings of an object match its access entries (D26).

import { canonical } from '../api/codec.ts'
import { ignoreNotFound } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import type { Json, JsonObject, Ref, Resource } from '../api/object.ts'
import { type Resources, refOf } from '../api/resources.ts'
import { forEachInSlices } from '../api/time-slices.ts'
import { ClusterRole, ClusterRoleBinding, mirrorLabel, Role, RoleBinding } from '../kinds/rbac.ts'
import { type Generated, generatedFor } from './generated-roles.ts'

export type Owner = { readonly kind: Kind; readonly ref: Ref }
export type Write = () => Promise<unknown>

export const generatedKinds = [Role, ClusterRole, RoleBinding, ClusterRoleBinding]

/** Creates, repairs and deletes. undefined: it has to wait until objects of a former owner with the same name are deleted. */
export async function planRoles(
  resources: Resources,
  { kind, ref }: Owner,
  owner: Resource,
): Promise<Write[] | undefined> {
  const { uid } = owner.metadata
  const stored = new Map<Kind, Map<string, Resource>>()
  for (const own of generatedKinds) {
    const { items } = await resources.list(own, { labelSelector: `${mirrorLabel}=${uid}` })
    stored.set(own, new Map(items.map(item => [item.object.metadata.name ?? '', item.object])))
  }
  const taken = new Set<string>()
  for (const { kind: own, object } of generatedFor(kind, owner)) {
    const { name } = object.metadata
    if (stored.get(own)?.has(name)) continue
    const other = await resources.get(own, { namespace: ref.namespace, name }).then(one => one.object, ignoreNotFound)
    if (other?.metadata.labels?.[mirrorLabel] !== undefined) return undefined
    if (other) taken.add(name)
  }
  const wanted = generatedFor(kind, owner, name => (taken.has(name) ? `${name}:${uid}` : name))
  const writes: Write[] = []
  for (const own of generatedKinds) {
    const rest = stored.get(own) ?? new Map<string, Resource>()
    await forEachInSlices(
      wanted.filter(each => each.kind === own),
      ({ object }) => {
        const current = rest.get(object.metadata.name)
        rest.delete(object.metadata.name)
        if (!current) writes.push(() => resources.create(own, ref.namespace, object, manager))
        else if (!current.metadata.deletionTimestamp) {
          const next = repaired(current, object)
          if (next) writes.push(() => resources.update(own, refOf(current), next, manager))
        }
      },
    )
    // In an earlier version users could set the label. Their objects stay.
    for (const object of rest.values())
      if (isControlledBy(object, uid)) {
        const preconditions = { uid: object.metadata.uid ?? '' }
        writes.push(() => resources.delete(own, refOf(object), { preconditions }))
      }
  }
  return writes
}

const manager = { fieldManager: 'access-roles' } as const

const isControlledBy = ({ metadata }: Resource, uid: string | undefined) =>
  metadata.ownerReferences?.some(one => one.controller === true && one.uid === uid) === true

/** undefined: the stored object is as it should be. */
function repaired(current: Resource, wanted: Generated['object']): Json | undefined {
  const { metadata, ...fields } = wanted
  const { apiVersion, kind: word, metadata: stored, ...now } = current as unknown as JsonObject
  const ownerReferences = (metadata as JsonObject)['ownerReferences'] as Json
  const references = (stored as JsonObject)['ownerReferences'] as Json | undefined
  if (isSame(now, fields) && isSame(references, ownerReferences)) return undefined
  return { apiVersion, kind: word, metadata: { ...(stored as JsonObject), ownerReferences }, ...fields } as Json
}

const isSame = (one: Json | undefined, other: Json | undefined) => canonical(one ?? null) === canonical(other ?? null)
