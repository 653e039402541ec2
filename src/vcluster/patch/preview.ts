// Previews the sync of one Endpoints object with the syncer's own planner.

import type { JsonObject, Metadata } from '../../api/object.ts'
import { addressGuard } from '../config/address-policy.ts'
import type { Config } from '../config/config.ts'
import { isNeverSynced, type KeyPolicy, keyPolicy } from '../config/metadata-keys.ts'
import { namespaceMap } from '../config/namespaces.ts'
import { type GroupKind, groupKindOf, kindWarning } from '../config/reference-kinds.ts'
import { endpointSlicesKind, serviceLabel } from '../sync/endpoint-slices-kind.ts'
import { endpointsKind } from '../sync/endpoints-kind.ts'
import type { SyncedObject } from '../sync/kinds.ts'
import { ownershipOf } from '../sync/ownership.ts'
import { type PlanTools, planObject, type State } from '../sync/plan.ts'
import { managedBy, nameAnnotation, virtualRefOf } from '../sync/sync-annotations.ts'
import type { SyncedKind } from '../sync/synced-kind.ts'
import { objectProblem } from '../sync/validate-endpoints.ts'
import { openPatcher, type Patched, type Patcher, type Step } from './apply.ts'
import { protectedReason } from './apply-one.ts'
import type { Patch } from './patch.ts'
import { labelIn } from './path.ts'
import { type Problem, problemTexts } from './problem.ts'
import type { ReferencedObject } from './reference.ts'
import { notSyncedBackReason } from './reverse-scope.ts'
import type { Sandbox } from './sandbox.ts'

export type PreviewOptions = {
  readonly config: Config
  readonly name: string
  readonly namespace: string
  /** The kinds of --sync-references. */
  readonly syncReferences?: readonly GroupKind[]
  readonly sandbox: Sandbox
  readonly now: () => number
}

export type Preview = {
  /** The object to write; with a problem, its state at the failure. */
  readonly object: JsonObject
  /** The object without patches. */
  readonly plain: JsonObject
  readonly trace: readonly Step[]
  readonly referencedObjects: readonly ReferencedObject[]
  readonly problem?: string
  /** The code of the problem, such as PatchFailed or NotSynced. */
  readonly reason?: string
  /** The patch that failed, if one did. */
  readonly failure?: Problem
  /** Hints about results that may be unexpected. */
  readonly notes: readonly string[]
}

export type PreviewObjects = { readonly virtualObject: JsonObject; readonly hostObject: JsonObject | null }

/** Assumes that the Service of the object exists without a selector. */
export async function previewToHost(objects: PreviewObjects, options: PreviewOptions): Promise<Preview> {
  const { patcher, seen } = recordingPatcher(objects.virtualObject, options)
  const patched = await planHost(objects, options, patcher)
  const plain = await planHost(objects, options, undefined)
  const { trace = [], referencedObjects = [], unresolvedReferences = [] } = seen.last ?? {}
  const notes = [
    ...unsyncedKeys(objects.virtualObject, options.config),
    ...trace.flatMap(unmatched),
    ...unresolvedReferences,
    ...unsyncedReferences(referencedObjects, syncedKindOf(objects.virtualObject), options),
    ...(patched.problem === undefined && seen.last ? restoredLabels(seen.last.object, patched.object, options) : []),
  ]
  const failure = patched.problem === undefined ? undefined : seen.last?.problem
  return { ...patched, plain: plain.object, trace, referencedObjects, notes, ...(failure && { failure }) }
}

async function planHost(
  { virtualObject, hostObject }: PreviewObjects,
  options: PreviewOptions,
  patcher: PlanTools['patcher'],
): Promise<Pick<Preview, 'object' | 'problem' | 'reason'>> {
  const { name, namespace, config, now } = options
  const { endpoints } = config.sync.toHost
  const virtual = virtualObject as unknown as SyncedObject
  const host = (hostObject ?? undefined) as unknown as SyncedObject | undefined
  const ref = { namespace: virtual.metadata.namespace ?? '', name: virtual.metadata.name ?? '' }
  const { allowedCIDRs: allowed, deniedCIDRs: denied, hostDeletePolicy } = endpoints
  const denyReason = addressGuard({ allowed, denied, apiServer: [] })
  const vcluster = { name, namespace, mapped: mappingOf(config)?.toHost }
  const synced = syncedKindOf(virtualObject)
  const tools = {
    synced,
    vcluster,
    hostDeletePolicy,
    owner: undefined,
    denyReason,
    isSyncedKey: keyPolicyOf(config),
    patcher,
    now,
  }
  const service = synced.serviceOf(virtual) ? 'plain' : 'none'
  const plan = await planObject({ ref, virtual, service, host }, tools)
  const object = (plan.host?.object ?? host ?? virtual) as unknown as JsonObject
  const disabled = disabledReason(synced, config)
  if (disabled !== undefined) return { object, problem: disabled, reason: notSynced }
  if (plan.syncFailure)
    return {
      object,
      problem: `${plan.syncFailure.reason}: ${plan.syncFailure.logged ?? plan.syncFailure.message}`,
      reason: plan.syncFailure.reason,
    }
  return plan.state === 'synced'
    ? { object }
    : { object, problem: `not synced: ${stateReason(plan.state, virtual, synced)}`, reason: notSynced }
}

const notSynced = 'NotSynced'

const disabledReason = ({ setting }: SyncedKind, { sync }: Config): string | undefined =>
  sync.toHost[setting].enabled ? undefined : `not synced: sync.toHost.${setting}.enabled is false`

function stateReason(state: State, virtual: SyncedObject, synced: SyncedKind): string {
  if (state === 'skipped')
    return synced.isManaged(virtual)
      ? 'a controller manages it, and the host has the same controller'
      : 'it belongs to the API server'
  if (state === 'waiting' && !synced.serviceOf(virtual)) return `the label ${serviceLabel} is missing`
  return state
}

export type ReverseObjects = { readonly virtualObject: JsonObject | null; readonly hostObject: JsonObject }

/** Returns why the virtual object of a host object is unknown. */
export function missingIdentity({ virtualObject, hostObject }: ReverseObjects, name: string): string | undefined {
  const { metadata } = hostObject as unknown as SyncedObject
  if (virtualObject || virtualRefOf(metadata, name)) return undefined
  if (metadata.annotations?.[nameAnnotation] !== undefined)
    return `it belongs to ${metadata.labels?.[managedBy] ?? 'another virtual cluster'}, not to ${name} (--name): the syncer would not change it (HostObjectForeign)`
  const fix = 'pass the output of vcluster patch without --reverse, or also pass the virtual object'
  return `it is not a host object of ${name}: it lacks the annotation ${nameAnnotation}; ${fix} (--virtual-object, input.yaml)`
}

/** Whether the syncer would sync changes of this host object back. */
function ownershipProblem(
  { virtualObject, hostObject }: ReverseObjects,
  { name, namespace, config }: PreviewOptions,
): Pick<Preview, 'problem' | 'notes'> {
  const { metadata } = hostObject as unknown as SyncedObject
  const virtual = (virtualObject as unknown as SyncedObject | null)?.metadata
  const ref = virtual ? { namespace: virtual.namespace ?? '', name: virtual.name ?? '' } : virtualRefOf(metadata, name)
  if (!ref) return { notes: [] }
  const vcluster = { name, namespace, mapped: mappingOf(config) }
  const owner = ownershipOf(metadata, { vcluster, ref, kind: syncedKindOf(hostObject).kind.kind, uid: virtual?.uid })
  if (owner === 'ours') return { notes: [] }
  if (owner.reason !== 'unmarked')
    return { problem: `HostObjectForeign: the syncer did not create it: ${owner.why}`, notes: [] }
  return {
    notes: ['the host object lacks the metadata of the syncer: it would not be synced back (HostObjectForeign)'],
  }
}

/** Only labels and annotations are synced back from the host. Shows all of them, as if the host had changed each one. */
export async function previewToVirtual(objects: ReverseObjects, options: PreviewOptions): Promise<Preview> {
  const { virtualObject, hostObject } = objects
  const { metadata, ...rest } = hostObject as unknown as SyncedObject
  const virtual = virtualObject as unknown as SyncedObject | null
  const known = virtualRefOf(metadata, options.name) ?? {}
  const { labels: _, annotations: __, ...own } = virtual?.metadata ?? (known as Metadata)
  const back: Metadata = { ...own, ...syncedMetadata(metadata, keyPolicyOf(options.config)) }
  const plain = { ...rest, ...virtual, metadata: back } as unknown as JsonObject
  const { patcher } = recordingPatcher(hostObject, options)
  const patched = await patcher?.toVirtual({ virtualObject, hostObject, object: plain })
  const { labels, annotations } = ((patched?.object ?? plain) as unknown as SyncedObject).metadata
  const object = { ...plain, metadata: { ...back, ...(labels && { labels }), ...(annotations && { annotations }) } }
  const trace = patched?.trace ?? []
  const { problem: foreign, notes } = ownershipProblem(objects, options)
  const disabled = disabledReason(syncedKindOf(hostObject), options.config)
  const problem = disabled ?? foreign
  return {
    object: object as unknown as JsonObject,
    plain,
    trace,
    referencedObjects: patched?.referencedObjects ?? [],
    ...(patched?.problem && {
      problem: `PatchFailed: ${problemTexts(patched.problem, syncedKindOf(hostObject).setting).logged}`,
      reason: 'PatchFailed',
      failure: patched.problem,
    }),
    ...(problem === undefined ? {} : { problem, reason: disabled === undefined ? 'HostObjectForeign' : notSynced }),
    notes: [...notes, ...trace.flatMap(unmatched), ...trace.flatMap(ignoredMatches)],
  }
}

export const syncedKindOf = ({ kind }: JsonObject): SyncedKind =>
  kind === 'EndpointSlice' ? endpointSlicesKind : endpointsKind

export const keyPolicyOf = ({ sync }: Config): KeyPolicy => {
  const { allowedMetadataKeys: allowed, deniedMetadataKeys: denied } = sync.toHost.endpoints
  return keyPolicy({ allowed, denied })
}

function syncedMetadata(
  { labels = {}, annotations = {} }: Metadata,
  isSyncedKey: KeyPolicy,
): Pick<Metadata, 'labels' | 'annotations'> {
  const synced = (map: { readonly [key: string]: string }) =>
    Object.fromEntries(Object.entries(map).filter(([key]) => isSyncedKey(key)))
  const maps = { labels: synced(labels), annotations: synced(annotations) }
  return Object.fromEntries(Object.entries(maps).filter(([, map]) => Object.keys(map).length))
}

/** Notes for unsynced keys, because a missing label looks like a wrong patch. The syncer sets some labels itself. */
function unsyncedKeys(object: JsonObject, config: Config): string[] {
  const { metadata } = object as unknown as SyncedObject
  const set: { readonly [part: string]: readonly string[] } = { labels: syncedKindOf(object).labelKeys }
  const isSyncedKey = keyPolicyOf(config)
  return (['labels', 'annotations'] as const).flatMap(part =>
    Object.keys(metadata[part] ?? {})
      .filter(key => !isNeverSynced(key) && !isSyncedKey(key) && !set[part]?.includes(key))
      .map(
        key => `metadata.${part}[${JSON.stringify(key)}] is not synced to the host (allowedMetadataKeys can allow it)`,
      ),
  )
}

/** Kinds that objects name with `kindPath`. Reading the file has already warned about the kinds of patches. */
function unsyncedReferences(
  referencedObjects: readonly ReferencedObject[],
  { setting }: SyncedKind,
  { config, syncReferences }: PreviewOptions,
): string[] {
  const { toHost } = config.sync
  const known = toHost[setting].patches.flatMap(({ reference }) =>
    reference && reference.kindPath === undefined ? [`${reference.apiVersion}/${reference.kind}`] : [],
  )
  return referencedObjects.flatMap(one => {
    const warning = known.includes(`${one.apiVersion}/${one.kind}`)
      ? undefined
      : kindWarning(groupKindOf(one), toHost, syncReferences)
    return warning === undefined ? [] : [`${one.path}: ${warning}`]
  })
}

/** Labels that patches changed and the syncer set again. Reading the file has already warned about paths that name them. */
function restoredLabels(before: JsonObject, after: JsonObject, { config }: PreviewOptions): string[] {
  const { setting, labelKeys } = syncedKindOf(after)
  const named = config.sync.toHost[setting].patches.map(({ path }) => labelIn(path))
  const labelOf = (object: JsonObject, key: string) => (object as unknown as SyncedObject).metadata.labels?.[key]
  return labelKeys
    .filter(key => labelOf(before, key) !== labelOf(after, key) && !named.includes(key))
    .map(key => `metadata.labels[${JSON.stringify(key)}] keeps its value: the syncer sets this label itself`)
}

function ignoredMatches({ index, skipped }: Step): string[] {
  return skipped
    .filter(({ reason }) => reason === notSyncedBackReason)
    .map(({ path }) => `patch ${index} at ${path}: ${notSyncedBackReason}, so this has no effect`)
}

/** Not an error, because objects differ, but a mistyped path looks the same. */
function unmatched({ index, path, isUnmatched, skipped: [first] }: Step): string[] {
  if (!isUnmatched) return []
  const isProtected = first?.reason === protectedReason
  const why = first ? ` (${isProtected ? first.path : `${first.path} ${first.reason}`.trim()})` : ''
  const what = isProtected ? 'only protected fields' : 'nothing in this object'
  return [`patch ${index} at ${path} matches ${what}${why} and has no effect`]
}

function mappingOf(config: Config) {
  const { enabled, mappings } = config.sync.toHost.namespaces
  return enabled ? namespaceMap(mappings.byName) : undefined
}

/** A patcher that records its last result towards the host. */
function recordingPatcher(
  object: JsonObject,
  options: PreviewOptions,
): {
  readonly patcher: Patcher | undefined
  readonly seen: { last?: Patched }
} {
  const { config, name, namespace, sandbox } = options
  const patches = config.sync.toHost[syncedKindOf(object).setting].patches as readonly Patch[]
  const seen: { last?: Patched } = {}
  if (!patches.length) return { patcher: undefined, seen }
  const map = mappingOf(config)
  const inner = openPatcher({
    patches,
    vcluster: { name, namespace, config: config as unknown as JsonObject },
    ...(map && { multiNamespace: map }),
    sandbox,
    validate: object => [objectProblem(object)].filter(problem => problem !== undefined),
  })
  const toHost: Patcher['toHost'] = async input => {
    seen.last = await inner.toHost(input)
    return seen.last
  }
  return { patcher: { ...inner, toHost }, seen }
}
