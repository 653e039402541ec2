// Generates roles and bindings for `access` entries and the cluster roles of teams, and restores them (D26).
// They are informational: the authorizer reads the object itself, so they grant nothing. They are deleted with their object.

import { canonical } from '../api/codec.ts'
import { isUndecryptable } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import type { Json, JsonObject, Ref, Resource } from '../api/object.ts'
import { type Document, type Resources, refOf } from '../api/resources.ts'
import { forEachInSlices } from '../api/time-slices.ts'
import { accessApplied, accessFailed, accessPending, conditionOf, generatedFrom } from '../kinds/object-conditions.ts'
import { ClusterRole, ClusterRoleBinding, mirrorLabel, Role, RoleBinding } from '../kinds/rbac.ts'
import { latin1, mentions, startInformer } from '../reconcile/informer.ts'
import { startLoop } from '../reconcile/work-queue.ts'
import { type Generated, generatedFor } from './generated-roles.ts'
import { notThere, writeConditions, writeFirstConditions } from './write-conditions.ts'

export type AccessRolesOptions = {
  readonly resources: Resources
  /** Kinds whose objects have owners and access entries. */
  readonly kinds: readonly Kind[]
  readonly now: () => number
  readonly failed: (what: string, error: unknown) => void
}

/** `source`: what the roles are generated from. `isOpen`: the conditions do not say yet that they exist. */
type Followed = { readonly source: string; readonly isOpen: boolean; readonly isBare: boolean }

/** An earlier version stored objects without conditions. A large store gets them slowly, so that other writes are not delayed. */
const firstConditionsEvery = 20

export function startAccessRoles({ resources, kinds, now, failed }: AccessRolesOptions): {
  readonly ready: Promise<void>
  idle(): Promise<void>
  stop(): Promise<void>
} {
  const queued = new Map<string, Owner>()
  const loop = startLoop({
    reconcile: async slot => {
      const one = queued.get(slot)
      if (one) await reconcile(resources, one, now)
      if (queued.get(slot) === one) queued.delete(slot)
      return undefined
    },
    failed: (slot, error) => failed(`generating the roles of ${slot}`, error),
  })
  const bare = new Map<string, Owner>()
  const firstConditions = startLoop({
    reconcile: async () => {
      const [next] = bare
      if (next) {
        bare.delete(next[0])
        await writeFirstConditions(resources, next[1], now).catch(error => {
          // A damaged object is not written, and others go first after a failure.
          if (isUndecryptable(error)) return
          bare.set(...next)
          throw error
        })
      }
      return bare.size > 0 ? firstConditionsEvery : undefined
    },
    failed: (_, error) => failed('writing the first conditions of an object', error),
  })
  const add = (owner: Owner | undefined) => {
    if (!owner) return
    const slot = slotOf(owner)
    queued.set(slot, owner)
    loop.add(slot)
  }
  const objects = kinds.map(kind =>
    startInformer({
      resources,
      kind,
      counts: isFollowed,
      keep: followed,
      failed: error => failed(`watching ${kind.plural}`, error),
      changed: (ref, next, before) => {
        const owner = { kind, ref }
        if (next?.isBare) {
          bare.set(slotOf(owner), owner)
          if (bare.size === 1) firstConditions.add('next')
        } else if (next?.isOpen || (next?.source ?? '') !== (before?.source ?? '')) add(owner)
      },
    }),
  )
  // Somebody may edit or delete what was generated.
  const generated = generatedKinds.map(kind =>
    startInformer({
      resources,
      kind,
      counts: mentions(mirrorLabel),
      keep: object => ownerIn(kinds, object),
      failed: error => failed(`watching ${kind.plural}`, error),
      changed: (_, next, before) => {
        add(next)
        if (!next) add(before)
      },
    }),
  )
  const informers = [...objects, ...generated]
  return {
    ready: Promise.all(informers.map(informer => informer.ready)).then(() => {}),
    idle: () => Promise.all([loop.idle(), firstConditions.idle()]).then(() => {}),
    async stop() {
      for (const informer of informers) informer.stop()
      await Promise.all([loop.stop(), firstConditions.stop()])
    },
  }
}

type Owner = { readonly kind: Kind; readonly ref: Ref }

const slotOf = ({ kind, ref }: Owner) => `${kind.plural}/${ref.namespace}/${ref.name}`
const generatedKinds = [Role, ClusterRole, RoleBinding, ClusterRoleBinding]

/** By the bytes: most objects have no access entries, and their conditions say all there is to say. */
function isFollowed({ json }: Document): boolean {
  const text = latin1(json)
  return hasEntries.test(text) || !text.includes('"type":"AccessApplied"')
}
const hasEntries = new RegExp(`"(?:access|clusterRoles)":|"${accessPending}"`)

function followed(object: Resource): Followed {
  const applied = conditionOf(object, 'AccessApplied')
  if (object.metadata.deletionTimestamp) return { source: '', isOpen: false, isBare: false }
  const source = generatedFrom(object.spec)
  return {
    source: source && `${object.metadata.uid} ${source}`,
    isOpen: applied?.reason === accessPending,
    isBare: applied === undefined,
  }
}

/** The object that a generated role or binding belongs to. */
function ownerIn(kinds: readonly Kind[], { metadata }: Resource): Owner | undefined {
  const reference = metadata.ownerReferences?.find(one => one.controller === true)
  const kind = kinds.find(one => one.kind === reference?.kind && one.apiVersion === reference.apiVersion)
  return kind && { kind, ref: { namespace: metadata.namespace ?? '', name: reference?.name ?? '' } }
}

async function reconcile(resources: Resources, owner: Owner, now: () => number): Promise<void> {
  const { kind, ref } = owner
  const object = await resources.get(kind, ref).then(document => document.object, notThere)
  if (!object || object.metadata.deletionTimestamp) return // the garbage collector deletes what was generated
  const source = generatedFrom(object.spec)
  const isCurrent = (other: Resource) =>
    other.metadata.uid === object.metadata.uid && generatedFrom(other.spec) === source
  try {
    if (!(await generate(resources, owner, object))) return
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    await writeConditions(resources, owner, { findings: [accessFailed(message)], isCurrent, now })
    throw error
  }
  const isNoted = conditionOf(object, 'AccessApplied')?.status === 'True'
  if (!isNoted) await writeConditions(resources, owner, { findings: [accessApplied], isCurrent, now })
}

/** Creates, repairs and removes. False: it has to wait until objects of a former owner with the same name are deleted. */
async function generate(resources: Resources, { kind, ref }: Owner, owner: Resource): Promise<boolean> {
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
    const other = await resources.get(own, { namespace: ref.namespace, name }).then(one => one.object, notThere)
    if (other?.metadata.labels?.[mirrorLabel] !== undefined) return false
    if (other) taken.add(name)
  }
  const wanted = generatedFor(kind, owner, name => (taken.has(name) ? `${name}:${uid}` : name))
  for (const own of generatedKinds) {
    const rest = stored.get(own) ?? new Map<string, Resource>()
    await forEachInSlices(
      wanted.filter(each => each.kind === own),
      async ({ object }) => {
        const current = rest.get(object.metadata.name)
        rest.delete(object.metadata.name)
        if (!current) await resources.create(own, ref.namespace, object, { fieldManager: 'access-roles' })
        else if (!current.metadata.deletionTimestamp) await repair(resources, own, current, object)
      },
    )
    // In an earlier version users could set the label. Their objects stay.
    const obsolete = [...rest.values()].filter(object => isControlledBy(object, uid))
    await forEachInSlices(obsolete, async object => void (await resources.delete(own, refOf(object))))
  }
  return true
}

const isControlledBy = ({ metadata }: Resource, uid: string | undefined) =>
  metadata.ownerReferences?.some(one => one.controller === true && one.uid === uid) === true

async function repair(resources: Resources, kind: Kind, current: Resource, wanted: Generated['object']): Promise<void> {
  const { metadata, ...fields } = wanted
  const { apiVersion, kind: word, metadata: stored, ...now } = current as unknown as JsonObject
  const ownerReferences = (metadata as JsonObject)['ownerReferences'] as Json
  const references = (stored as JsonObject)['ownerReferences'] as Json | undefined
  if (isSame(now, fields) && isSame(references, ownerReferences)) return
  const next = { apiVersion, kind: word, metadata: { ...(stored as JsonObject), ownerReferences }, ...fields }
  await resources.update(kind, refOf(current), next as Json, { fieldManager: 'access-roles' })
}

const isSame = (one: Json | undefined, other: Json | undefined) => canonical(one ?? null) === canonical(other ?? null)
