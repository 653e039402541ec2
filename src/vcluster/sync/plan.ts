// Plans the writes for one Endpoints or EndpointSlice from the state of both sides: ownership, merge, patches and address guard.
// Does no I/O; endpoints-controller.ts does.

import { canonical } from '../../api/codec.ts'
import type { Json, JsonObject, OwnerReference, Ref } from '../../api/object.ts'
import { defaultKeyPolicy, type KeyPolicy } from '../config/metadata-keys.ts'
import type { Patched, Patcher } from '../patch/apply.ts'
import { problemTexts } from '../patch/problem.ts'
import type { ReferencedObject } from '../patch/reference.ts'
import { type SyncFailure, withCondition, withoutConditions } from './condition.ts'
import { hostRefOf, type Vcluster } from './host-ref.ts'
import type { SyncedObject } from './kinds.ts'
import { type Adopted, adoptedFrom, isEmpty, keptOnHost, baseOf as seenNow, withChanges } from './merge-metadata.ts'
import { type Foreign, ownershipOf } from './ownership.ts'
import { hashOf, hostUidAnnotation, readBase, syncMetadataOf, virtualUidOf, writeBase } from './sync-annotations.ts'
import type { SyncedKind } from './synced-kind.ts'
import { toHost, translatedPods } from './translate.ts'

/** The outcome for an object. */
export type State = 'synced' | 'waiting' | 'host-owned' | 'skipped' | 'gone' | 'failed'

export type ObservedState = {
  readonly ref: Ref
  readonly virtual: SyncedObject | undefined
  /** The service of the object. With a selector, the host's controller manages its endpoints. */
  readonly service: 'none' | 'selector' | 'plain'
  /** Why the object must not be added to the service on the host. */
  readonly serviceProblem?: SyncFailure | undefined
  readonly host: SyncedObject | undefined
}

export type PlanTools = {
  readonly synced: SyncedKind
  readonly vcluster: Vcluster
  readonly hostDeletePolicy: 'Recreate' | 'Propagate'
  readonly owner: OwnerReference | undefined
  /** Returns why an address is denied; undefined if it is allowed. */
  readonly denyReason: (address: string) => string | undefined
  /** Which labels and annotations are synced; default: those that no well-known controller acts on. */
  readonly isSyncedKey?: KeyPolicy | undefined
  /** Absent without patches. */
  readonly patcher?: Pick<Patcher, 'toHost' | 'toVirtual'> | undefined
  readonly now: () => number
}

export type Write =
  | { readonly verb: 'create' | 'update'; readonly object: SyncedObject }
  | { readonly verb: 'delete'; readonly object: SyncedObject }

/** At most one write per side. */
export type Plan = {
  readonly state: State
  /** The side to write first. Default: the host, so that the condition is removed only after success. */
  readonly first?: 'virtual'
  readonly hostRef?: Ref
  readonly virtual?: Write
  readonly host?: Write
  readonly syncFailure?: SyncFailure
  readonly referencedObjects?: readonly ReferencedObject[]
  /** References that cannot have a target, as messages for the tenant. */
  readonly unresolvedReferences?: readonly string[]
}

export async function planObject(observed: ObservedState, tools: PlanTools): Promise<Plan> {
  const { ref, virtual, host, service, serviceProblem } = observed
  const hostRef = hostRefOf(ref, tools.vcluster)
  const { synced } = tools
  // The endpoints of the API server itself are never synced.
  const isApiServer = ref.namespace === 'default' && (virtual ? synced.serviceOf(virtual) : ref.name) === 'kubernetes'
  if (isApiServer) return { state: 'skipped' }
  const claim = { vcluster: tools.vcluster, ref, kind: synced.kind.kind, uid: virtual?.metadata.uid }
  const owner = host && ownershipOf(host.metadata, claim)
  const drop = owner === 'ours' && host && !host.metadata.deletionTimestamp ? { host: remove(host) } : {}
  const at = hostRef ? { hostRef } : {}
  if (!virtual || virtual.metadata.deletionTimestamp) return { state: 'gone', ...at, ...drop }
  /** Removes the annotation first, or the removal would look like a deletion on the host. */
  const withdrawn = (state: State): Plan => ({
    state,
    first: 'virtual',
    ...at,
    ...changed(virtual, withoutConditions(clean(virtual, undefined, tools))),
    ...drop,
  })
  if (synced.isManaged(virtual)) return withdrawn('skipped')
  if (service !== 'plain') return withdrawn(service === 'none' ? 'waiting' : 'host-owned')
  const refusal = synced.refusal(virtual) ?? serviceProblem
  if (refusal) return { ...failed(virtual, refusal, tools), ...at, ...drop }
  if (!hostRef) {
    const message = `namespace ${ref.namespace} has no entry in sync.toHost.namespaces.mappings.byName`
    return failed(virtual, { reason: 'NamespaceNotMapped', message }, tools)
  }
  if (host?.metadata.deletionTimestamp) return { state: 'waiting', hostRef }
  if (typeof owner === 'object') return { hostRef, ...failed(virtual, foreignFailure(owner, ref, hostRef), tools) }
  if (!host && tools.hostDeletePolicy === 'Propagate' && wasCreated(virtual, hostRef))
    return { state: 'gone', hostRef, virtual: remove(virtual) }
  if (host && synced.needsNewObject(virtual, host)) return withdrawn('waiting')
  return { hostRef, ...(await syncToHost(virtual, host, { hostRef, tools })) }
}

/** The message must not reveal the names of other tenants. */
function foreignFailure({ reason, why }: Foreign, ref: Ref, hostRef: Ref): SyncFailure {
  const [name, hostName] = [ref, hostRef].map(one => `${one.namespace}/${one.name}`)
  return {
    reason: 'HostObjectForeign',
    message: `the host object for ${name} was not created by this syncer${reason === 'near' ? `: ${why}` : ''}`,
    logged: `${hostName} on the host was not created by this syncer: ${why}`,
  }
}

const remove = (object: SyncedObject): Write => ({ verb: 'delete', object })

function failed(virtual: SyncedObject | undefined, syncFailure: SyncFailure, tools: PlanTools): Plan {
  if (!virtual || virtual.metadata.deletionTimestamp) return { state: 'gone' }
  return { state: 'failed', syncFailure, ...changed(virtual, withCondition(virtual, syncFailure, tools.now())) }
}

const changed = (before: SyncedObject, after: SyncedObject): Pick<Plan, 'virtual'> =>
  before === after ? {} : { virtual: { verb: 'update', object: after } }

type SyncToHostOptions = { readonly hostRef: Ref; readonly tools: PlanTools }

/** `host` is ours, or absent. */
async function syncToHost(
  virtual: SyncedObject,
  host: SyncedObject | undefined,
  { hostRef, tools }: SyncToHostOptions,
): Promise<Plan> {
  const merged = await adopt(virtual, host, tools)
  if ('syncFailure' in merged) return failed(virtual, merged.syncFailure, tools)
  const { synced, vcluster, isSyncedKey = defaultKeyPolicy } = tools
  const object = toHost(merged, { synced, host: hostRef, vcluster, isSyncedKey })
  const patched = await tools.patcher?.toHost({
    virtualObject: merged as unknown as JsonObject,
    hostObject: (host ?? null) as unknown as JsonObject | null,
    object: object as unknown as JsonObject,
    translatedPods: translatedPods(merged, synced, vcluster),
  })
  const wanted = (patched?.object ?? object) as unknown as SyncedObject
  const problem = patched && problemOf(patched, synced)
  if (problem !== undefined) return failed(virtual, problem, tools)
  const refusal = synced.refusal(wanted)
  if (refusal) return failed(virtual, refusal, tools)
  const denied = deniedAddress(wanted, tools)
  if (denied !== undefined) return failed(virtual, { reason: 'AddressRefused', message: denied }, tools)
  const owner = hostRef.namespace === tools.vcluster.namespace ? tools.owner : undefined
  const write = hostWrite(finish(wanted, { merged, host, hostRef, tools }), host, { owner, synced })
  // Store an edit of the host on the virtual side before recording it on the host. The next pass removes the condition.
  const { uid } = host?.metadata ?? {}
  const next = merged === virtual ? clean(merged, uid === undefined ? undefined : { uid, hostRef }, tools) : merged
  return {
    state: 'synced',
    ...(merged === virtual ? {} : { first: 'virtual' as const }),
    ...changed(virtual, next),
    ...(write ? { host: write } : {}),
    ...(patched?.referencedObjects.length ? { referencedObjects: patched.referencedObjects } : {}),
    ...(patched?.unresolvedReferences?.length ? { unresolvedReferences: patched.unresolvedReferences } : {}),
  }
}

/** The virtual object with the changes of the host, after the reverse patches. */
async function adopt(
  virtual: SyncedObject,
  host: SyncedObject | undefined,
  { synced, patcher, isSyncedKey = defaultKeyPolicy }: PlanTools,
): Promise<SyncedObject | { readonly syncFailure: SyncFailure }> {
  // A new object of the same name does not inherit edits of the old one.
  const base = host && virtualUidOf(host.metadata) === virtual.metadata.uid ? readBase(host.metadata) : undefined
  const adopted = base && host ? adoptedFrom(host.metadata, virtual.metadata, base, isSyncedKey) : undefined
  if (!adopted || !host || isEmpty(adopted)) return virtual
  if (!patcher) return withAdopted(virtual, adopted)
  const reversed = await patcher.toVirtual({
    virtualObject: virtual as unknown as JsonObject,
    hostObject: host as unknown as JsonObject,
    object: asOnHost(virtual, host, { isSyncedKey, synced }) as unknown as JsonObject,
    changes: { labels: new Set(Object.keys(adopted.labels)), annotations: new Set(Object.keys(adopted.annotations)) },
  })
  const problem = problemOf(reversed, synced)
  if (problem !== undefined) return { syncFailure: problem }
  const { metadata } = reversed.object as unknown as SyncedObject
  // A patch of a whole map returns all keys. The unchanged ones keep their virtual values.
  const through = (part: 'labels' | 'annotations') =>
    Object.fromEntries(Object.keys(adopted[part]).map(key => [key, metadata[part]?.[key]]))
  return withAdopted(virtual, { labels: through('labels'), annotations: through('annotations') })
}

/** Returns the same object if nothing changes. */
function withAdopted(virtual: SyncedObject, adopted: Adopted): SyncedObject {
  const labels = withChanges(virtual.metadata.labels, adopted.labels)
  const annotations = withChanges(virtual.metadata.annotations, adopted.annotations)
  if (same(labels, virtual.metadata.labels ?? {}) && same(annotations, virtual.metadata.annotations ?? {}))
    return virtual
  return { ...virtual, metadata: { ...virtual.metadata, labels, annotations } }
}

/** The virtual object with the values of the host, which is the form that reverse patches expect. */
function asOnHost(
  virtual: SyncedObject,
  host: SyncedObject,
  { isSyncedKey, synced }: { readonly isSyncedKey: KeyPolicy; readonly synced: SyncedKind },
): SyncedObject {
  const crossing = (map: { readonly [key: string]: string } = {}) =>
    Object.fromEntries(Object.entries(map).filter(([key]) => isSyncedKey(key)))
  const { labels, annotations } = host.metadata
  return {
    apiVersion: virtual.apiVersion,
    kind: virtual.kind,
    metadata: { ...virtual.metadata, labels: crossing(labels), annotations: crossing(annotations) },
    ...synced.content(host),
  }
}

const problemOf = ({ problem }: Patched, { setting }: SyncedKind): SyncFailure | undefined =>
  problem && { reason: 'PatchFailed', ...problemTexts(problem, setting) }

type FinishOptions = {
  readonly merged: SyncedObject
  readonly host: SyncedObject | undefined
  readonly hostRef: Ref
  readonly tools: PlanTools
}

/** Restores names and sync metadata after the patches, keeps keys of the host, and stores the base of the next merge. */
function finish(wanted: SyncedObject, { merged, host, hostRef, tools }: FinishOptions): SyncedObject {
  const { metadata } = wanted
  const { synced, vcluster, isSyncedKey = defaultKeyPolicy } = tools
  const marks = syncMetadataOf(merged, hostRef, vcluster)
  const written = {
    labels: { ...metadata.labels, ...synced.labels(merged, vcluster), ...marks.labels },
    annotations: { ...metadata.annotations, ...marks.annotations },
  }
  const kept = keptOnHost(host?.metadata, host && readBase(host.metadata), { isSyncedKey, written })
  const labels = { ...kept.labels, ...written.labels }
  const annotations = { ...kept.annotations, ...written.annotations }
  const base = writeBase(seenNow(merged.metadata, { labels, annotations }, { isSyncedKey, written }))
  return {
    apiVersion: synced.kind.apiVersion,
    kind: synced.kind.kind,
    metadata: { ...hostRef, labels, annotations: { ...annotations, ...base } },
    ...synced.content(wanted),
  }
}

/** Returns undefined if the host object is up to date. */
function hostWrite(
  wanted: SyncedObject,
  current: SyncedObject | undefined,
  { owner, synced }: { readonly owner: OwnerReference | undefined; readonly synced: SyncedKind },
): Write | undefined {
  const owners = current?.metadata.ownerReferences ?? []
  const isOwned = !owner || owners.some(({ uid }) => uid === owner.uid)
  // An outdated owner of the same name would cause garbage collection of the object.
  const others = owners.filter(({ kind, name }) => kind !== owner?.kind || name !== owner.name)
  const ownerReferences = isOwned ? owners : [...others, owner]
  const metadata = { ...wanted.metadata, ...(ownerReferences.length ? { ownerReferences } : {}) }
  if (!current) return { verb: 'create', object: { ...wanted, metadata } }
  const isSame =
    isOwned &&
    same(wanted.metadata.labels, current.metadata.labels) &&
    same(wanted.metadata.annotations, current.metadata.annotations) &&
    synced.isSameContent(wanted, current)
  if (isSame) return undefined
  const { managedFields: _, ...kept } = current.metadata
  return { verb: 'update', object: { ...wanted, metadata: { ...kept, ...metadata } } }
}

const same = (a: unknown, b: unknown) => a === b || canonical((a ?? null) as Json) === canonical((b ?? null) as Json)

/** Identifies the host object that was created for a virtual object. Hashed, because the tenant can read it. */
const createdValue = ({ metadata: { uid } }: SyncedObject, hostUid: string, { namespace, name }: Ref) =>
  `${uid}/${hostUid}/${hashOf(`${namespace}/${name}`)}`
/** False for copies of an object, which have its annotations, and for objects with a new host namespace. */
function wasCreated(virtual: SyncedObject, hostRef: Ref): boolean {
  const mark = virtual.metadata.annotations?.[hostUidAnnotation]
  return mark !== undefined && mark === createdValue(virtual, mark.split('/')[1] ?? '', hostRef)
}

type HostObject = { readonly uid: string; readonly hostRef: Ref }

/** Removes the condition `Synced` and sets the annotation that distinguishes a deletion on the host from an object never created. */
function clean(virtual: SyncedObject, created: HostObject | undefined, tools: PlanTools): SyncedObject {
  const fine = withCondition(virtual, undefined, tools.now())
  const { annotations = {} } = fine.metadata
  const mark =
    tools.hostDeletePolicy === 'Propagate' && created ? createdValue(virtual, created.uid, created.hostRef) : undefined
  if (annotations[hostUidAnnotation] === mark) return fine
  return {
    ...fine,
    metadata: { ...fine.metadata, annotations: withChanges(annotations, { [hostUidAnnotation]: mark }) },
  }
}

function deniedAddress(object: SyncedObject, { synced, denyReason }: PlanTools): string | undefined {
  for (const [path, address] of synced.addresses(object)) {
    const why = denyReason(address)
    if (why !== undefined) return `${path} is ${why} (${address.slice(0, 64)})`
  }
  return undefined
}
