// What has to be written for one Endpoints, from what is on both sides: the gate, the merge, the patches, the guard.
// Nothing is read or written here; endpoints.ts does both.

import { canonical } from '../../api/codec.ts'
import type { Json, JsonObject, OwnerReference, Ref } from '../../api/object.ts'
import { defaultKeyPolicy, type KeyPolicy } from '../config/metadata-keys.ts'
import type { Patched, Patcher } from '../patch/apply.ts'
import { problemTexts } from '../patch/problem.ts'
import type { Referent } from '../patch/reference.ts'
import { type Trouble, withCondition } from './condition.ts'
import type { EndpointsObject } from './kinds.ts'
import { adoptedFrom, isEmpty, keptOnHost, baseOf as seenNow, withChanges } from './merge-metadata.ts'
import { type Foreign, ownershipOf } from './ownership.ts'
import { hashOf, hostUidMark, marksOf, readBase, virtualUidOf, writeBase } from './sync-annotations.ts'
import { hostRefOf, subsetsKey, toHost, type Vcluster } from './translate.ts'

/** The gate's answer, or how it went. */
export type State = 'synced' | 'waiting' | 'host-owned' | 'skipped' | 'gone' | 'failed'

export type World = {
  readonly ref: Ref
  readonly virtual: EndpointsObject | undefined
  /** The service of the same name: whether it is there, and whether the host's controller looks after its endpoints. */
  readonly service: 'none' | 'selector' | 'plain'
  readonly host: EndpointsObject | undefined
}

export type PlanTools = {
  readonly vcluster: Vcluster
  readonly hostDeletePolicy: 'Recreate' | 'Propagate'
  readonly owner: OwnerReference | undefined
  /** Why an address is refused; undefined: it is not. */
  readonly refuses: (address: string) => string | undefined
  /** Which labels and annotations cross; default: those that no well-known controller acts on. */
  readonly crosses?: KeyPolicy | undefined
  /** Absent: there are no patches. */
  readonly patcher?: Pick<Patcher, 'toHost' | 'toVirtual'> | undefined
  readonly now: () => number
}

export type Write =
  | { readonly verb: 'create' | 'update'; readonly object: EndpointsObject }
  | { readonly verb: 'delete'; readonly object: EndpointsObject }

/** At most one write a side. */
export type Plan = {
  readonly state: State
  /** What must be safe before the other is touched. Default: the host, so that a condition goes only when all is well. */
  readonly first?: 'virtual'
  readonly hostRef?: Ref
  readonly virtual?: Write
  readonly host?: Write
  readonly trouble?: Trouble
  readonly referents?: readonly Referent[]
}

export async function planEndpoints(world: World, tools: PlanTools): Promise<Plan> {
  const { ref, virtual, host, service } = world
  const hostRef = hostRefOf(ref, tools.vcluster)
  // The address of the API server itself is nobody's to sync.
  if (ref.namespace === 'default' && ref.name === 'kubernetes') return { state: 'skipped' }
  const claim = { vcluster: tools.vcluster, ref, kind: 'Endpoints', uid: virtual?.metadata.uid }
  const owner = host && ownershipOf(host.metadata, claim)
  const drop = owner === 'ours' && host && !host.metadata.deletionTimestamp ? { host: remove(host) } : {}
  const at = hostRef ? { hostRef } : {}
  if (!virtual || virtual.metadata.deletionTimestamp) return { state: 'gone', ...at, ...drop }
  if (service !== 'plain') {
    const state = service === 'none' ? 'waiting' : 'host-owned'
    // The mark goes before the object does: else its end would look like a deletion on the host.
    return { state, first: 'virtual', ...at, ...changed(virtual, clean(virtual, undefined, tools)), ...drop }
  }
  if (!hostRef) {
    const message = `the namespace ${ref.namespace} has no entry in sync.toHost.namespaces.mappings.byName`
    return failed(virtual, { reason: 'NamespaceNotMapped', message }, tools)
  }
  if (host?.metadata.deletionTimestamp) return { state: 'waiting', hostRef }
  if (typeof owner === 'object') return { hostRef, ...failed(virtual, foreignTrouble(owner, ref, hostRef), tools) }
  if (!host && tools.hostDeletePolicy === 'Propagate' && wasMade(virtual, hostRef))
    return { state: 'gone', hostRef, virtual: remove(virtual) }
  return { hostRef, ...(await bring(virtual, host, { hostRef, tools })) }
}

/** The tenant must not learn the names of its neighbours. */
function foreignTrouble({ reason, why }: Foreign, ref: Ref, hostRef: Ref): Trouble {
  const [name, hostName] = [ref, hostRef].map(one => `${one.namespace}/${one.name}`)
  return {
    reason: 'HostObjectForeign',
    message: `the host object for ${name} was not created by this syncer${reason === 'near' ? `: ${why}` : ''}`,
    logged: `${hostName} on the host was not created by this syncer: ${why}`,
  }
}

const remove = (object: EndpointsObject): Write => ({ verb: 'delete', object })

function failed(virtual: EndpointsObject | undefined, trouble: Trouble, tools: PlanTools): Plan {
  if (!virtual || virtual.metadata.deletionTimestamp) return { state: 'gone' }
  return { state: 'failed', trouble, ...changed(virtual, withCondition(virtual, trouble, tools.now())) }
}

const changed = (before: EndpointsObject, after: EndpointsObject): Pick<Plan, 'virtual'> =>
  before === after ? {} : { virtual: { verb: 'update', object: after } }

type BringOptions = { readonly hostRef: Ref; readonly tools: PlanTools }

/** `host` is ours, or absent. */
async function bring(
  virtual: EndpointsObject,
  host: EndpointsObject | undefined,
  { hostRef, tools }: BringOptions,
): Promise<Plan> {
  const merged = await adopt(virtual, host, tools)
  if ('trouble' in merged) return failed(virtual, merged.trouble, tools)
  const { vcluster, crosses = defaultKeyPolicy } = tools
  const object = toHost(merged, { host: hostRef, vcluster, crosses })
  const patched = await tools.patcher?.toHost({
    virtualObject: merged as unknown as JsonObject,
    hostObject: (host ?? null) as unknown as JsonObject | null,
    object: object as unknown as JsonObject,
  })
  const wanted = (patched?.object ?? object) as unknown as EndpointsObject
  const problem = patched && problemOf(patched)
  if (problem !== undefined) return failed(virtual, problem, tools)
  const refused = refusedAddress(wanted, tools.refuses)
  if (refused !== undefined) return failed(virtual, { reason: 'AddressRefused', message: refused }, tools)
  const owner = hostRef.namespace === tools.vcluster.namespace ? tools.owner : undefined
  const write = hostWrite(finish(wanted, { merged, host, hostRef, tools }), host, owner)
  // An edit of the host is on the virtual side before the host says that it is; its condition goes the next time.
  const { uid } = host?.metadata ?? {}
  const next = merged === virtual ? clean(merged, uid === undefined ? undefined : { uid, hostRef }, tools) : merged
  return {
    state: 'synced',
    ...(merged === virtual ? {} : { first: 'virtual' as const }),
    ...changed(virtual, next),
    ...(write ? { host: write } : {}),
    ...(patched?.referents.length ? { referents: patched.referents } : {}),
  }
}

/** The virtual object with what the host changed, seen through the reverse patches. */
async function adopt(
  virtual: EndpointsObject,
  host: EndpointsObject | undefined,
  { patcher, crosses = defaultKeyPolicy }: PlanTools,
): Promise<EndpointsObject | { readonly trouble: Trouble }> {
  // Another object of the same name inherits no edits that were made to the one before.
  const base = host && virtualUidOf(host.metadata) === virtual.metadata.uid ? readBase(host.metadata) : undefined
  const adopted = base && host ? adoptedFrom(host.metadata, virtual.metadata, base, crosses) : undefined
  if (!adopted || !host || isEmpty(adopted)) return virtual
  const { labels, annotations } = virtual.metadata
  const apply = (from: EndpointsObject['metadata'] | undefined): EndpointsObject => {
    const through = (changes: typeof adopted.labels, part: 'labels' | 'annotations') =>
      from ? Object.fromEntries(Object.keys(changes).map(key => [key, from[part]?.[key]])) : changes
    return {
      ...virtual,
      metadata: {
        ...virtual.metadata,
        labels: withChanges(labels, through(adopted.labels, 'labels')),
        annotations: withChanges(annotations, through(adopted.annotations, 'annotations')),
      },
    }
  }
  const plain = apply(undefined)
  if (!patcher) return plain
  const reversed = await patcher.toVirtual({
    virtualObject: virtual as unknown as JsonObject,
    hostObject: host as unknown as JsonObject,
    object: plain as unknown as JsonObject,
  })
  const back = reversed.object as unknown as EndpointsObject
  const problem = problemOf(reversed)
  return problem === undefined ? apply(back.metadata) : { trouble: problem }
}

const problemOf = ({ problem }: Patched): Trouble | undefined =>
  problem && { reason: 'PatchFailed', ...problemTexts(problem) }

type FinishOptions = {
  readonly merged: EndpointsObject
  readonly host: EndpointsObject | undefined
  readonly hostRef: Ref
  readonly tools: PlanTools
}

/** Names and marks are not the patches' to change; what is of that side alone stays; and what is now is written down. */
function finish(
  { metadata, subsets }: EndpointsObject,
  { merged, host, hostRef, tools }: FinishOptions,
): EndpointsObject {
  const { vcluster, crosses = defaultKeyPolicy } = tools
  const marks = marksOf(merged, hostRef, vcluster)
  const written = {
    labels: { ...metadata.labels, ...marks.labels },
    annotations: { ...metadata.annotations, ...marks.annotations },
  }
  const kept = keptOnHost(host?.metadata, host && readBase(host.metadata), { crosses, written })
  const labels = { ...kept.labels, ...written.labels }
  const annotations = { ...kept.annotations, ...written.annotations }
  const base = writeBase(seenNow(merged.metadata, { labels, annotations }, { crosses, written }))
  return {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: { ...hostRef, labels, annotations: { ...annotations, ...base } },
    ...(subsets?.length ? { subsets } : {}),
  }
}

/** undefined: nothing to change. */
function hostWrite(
  wanted: EndpointsObject,
  there: EndpointsObject | undefined,
  owner: OwnerReference | undefined,
): Write | undefined {
  const owners = there?.metadata.ownerReferences ?? []
  const isOwned = !owner || owners.some(({ uid }) => uid === owner.uid)
  // An owner of that name that is another one by now would take the object with it.
  const others = owners.filter(({ kind, name }) => kind !== owner?.kind || name !== owner.name)
  const ownerReferences = isOwned ? owners : [...others, owner]
  const metadata = { ...wanted.metadata, ...(ownerReferences.length ? { ownerReferences } : {}) }
  if (!there) return { verb: 'create', object: { ...wanted, metadata } }
  const isSame =
    isOwned &&
    same(wanted.metadata.labels, there.metadata.labels) &&
    same(wanted.metadata.annotations, there.metadata.annotations) &&
    (same(wanted.subsets, there.subsets) || subsetsKey(wanted.subsets) === subsetsKey(there.subsets))
  if (isSame) return undefined
  const { managedFields: _, ...kept } = there.metadata
  return { verb: 'update', object: { ...wanted, metadata: { ...kept, ...metadata } } }
}

const same = (a: unknown, b: unknown) => a === b || canonical((a ?? null) as Json) === canonical((b ?? null) as Json)

/** Which object was made of which, and where; hashed, for the tenant sees it. */
const madeMark = ({ metadata: { uid } }: EndpointsObject, hostUid: string, { namespace, name }: Ref) =>
  `${uid}/${hostUid}/${hashOf(`${namespace}/${name}`)}`
/** A copy of an object carries its annotations, and is another object; one that goes elsewhere by now was never made there. */
function wasMade(virtual: EndpointsObject, hostRef: Ref): boolean {
  const mark = virtual.metadata.annotations?.[hostUidMark]
  return mark !== undefined && mark === madeMark(virtual, mark.split('/')[1] ?? '', hostRef)
}

type Made = { readonly uid: string; readonly hostRef: Ref }

/** In sync: without a condition, and with the mark that tells a deletion on the host from what was never made. */
function clean(virtual: EndpointsObject, made: Made | undefined, tools: PlanTools): EndpointsObject {
  const fine = withCondition(virtual, undefined, tools.now())
  const { annotations = {} } = fine.metadata
  const mark = tools.hostDeletePolicy === 'Propagate' && made ? madeMark(virtual, made.uid, made.hostRef) : undefined
  if (annotations[hostUidMark] === mark) return fine
  return {
    ...fine,
    metadata: { ...fine.metadata, annotations: withChanges(annotations, { [hostUidMark]: mark }) },
  }
}

function refusedAddress({ subsets = [] }: EndpointsObject, refuses: PlanTools['refuses']): string | undefined {
  for (const [index, subset] of subsets.entries())
    for (const key of ['addresses', 'notReadyAddresses'] as const)
      for (const [at, { ip = '' }] of (subset[key] ?? []).entries()) {
        const why = refuses(ip)
        if (why !== undefined) return `subsets[${index}].${key}[${at}].ip is ${why} (${ip.slice(0, 64)})`
      }
  return undefined
}
