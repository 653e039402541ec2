// What the other side would get for one Endpoints, before anything runs: by the syncer's own plan. The command line calls it.

import type { JsonObject, Metadata } from '../../api/object.ts'
import { addressGuard } from '../config/address-policy.ts'
import type { Config } from '../config/config.ts'
import { type KeyPolicy, keyPolicy, neverCrosses } from '../config/metadata-keys.ts'
import { namespaceMap } from '../config/namespaces.ts'
import type { EndpointsObject } from '../sync/kinds.ts'
import { ownershipOf } from '../sync/ownership.ts'
import { type PlanTools, planEndpoints } from '../sync/plan.ts'
import { managedBy, nameMark, virtualRefOf } from '../sync/sync-annotations.ts'
import { objectProblem } from '../sync/validate-endpoints.ts'
import { openPatcher, type Patched, type Patcher, type Step } from './apply.ts'
import { protectedReason } from './apply-one.ts'
import type { Patch } from './patch.ts'
import { problemTexts } from './problem.ts'
import type { Referent } from './reference.ts'
import type { Sandbox } from './sandbox.ts'

export type PreviewOptions = {
  readonly config: Config
  readonly name: string
  readonly namespace: string
  readonly sandbox: Sandbox
  readonly now: () => number
}

export type Preview = {
  /** As it would be written; with a problem, as far as it got. */
  readonly object: JsonObject
  /** The same without patches. */
  readonly plain: JsonObject
  readonly trace: readonly Step[]
  readonly referents: readonly Referent[]
  readonly problem?: string
  /** What is true and might surprise. */
  readonly notes: readonly string[]
}

export type PreviewObjects = { readonly virtualObject: JsonObject; readonly hostObject: JsonObject | null }

/** As if the service of the same name were there and had no selector. */
export async function previewToHost(objects: PreviewObjects, options: PreviewOptions): Promise<Preview> {
  const { patcher, seen } = watched(options)
  const patched = await planHost(objects, options, patcher)
  const plain = await planHost(objects, options, undefined)
  const { trace = [], referents = [] } = seen.last ?? {}
  const notes = [...keysThatStay(objects.virtualObject, options.config), ...trace.flatMap(unmatched)]
  return { ...patched, plain: plain.object, trace, referents, notes }
}

async function planHost(
  { virtualObject, hostObject }: PreviewObjects,
  options: PreviewOptions,
  patcher: PlanTools['patcher'],
): Promise<Pick<Preview, 'object' | 'problem'>> {
  const { name, namespace, config, now } = options
  const { endpoints } = config.sync.toHost
  const virtual = virtualObject as unknown as EndpointsObject
  const host = (hostObject ?? undefined) as unknown as EndpointsObject | undefined
  const ref = { namespace: virtual.metadata.namespace ?? '', name: virtual.metadata.name ?? '' }
  const { allowedCIDRs: allowed, deniedCIDRs: denied, hostDeletePolicy } = endpoints
  const refuses = addressGuard({ allowed, denied, apiServer: [] })
  const vcluster = { name, namespace, mapped: mappingOf(config)?.toHost }
  const tools = { vcluster, hostDeletePolicy, owner: undefined, refuses, crosses: crossesBy(config), patcher, now }
  const plan = await planEndpoints({ ref, virtual, service: 'plain', host }, tools)
  const object = (plan.host?.object ?? host ?? virtual) as unknown as JsonObject
  if (plan.trouble) return { object, problem: `${plan.trouble.reason}: ${plan.trouble.logged ?? plan.trouble.message}` }
  return plan.state === 'synced' ? { object } : { object, problem: `it is not synced: ${plan.state}` }
}

export type ReverseObjects = { readonly virtualObject: JsonObject | null; readonly hostObject: JsonObject }

/** Why nobody can say which virtual object a host object stands for. */
export function whyNameless({ virtualObject, hostObject }: ReverseObjects, name: string): string | undefined {
  const { metadata } = hostObject as unknown as EndpointsObject
  if (virtualObject || virtualRefOf(metadata, name)) return undefined
  if (metadata.annotations?.[nameMark] !== undefined)
    return `it is a host object of ${metadata.labels?.[managedBy] ?? 'another virtual cluster'}, not of ${name} (--name): the syncer would leave it alone as HostObjectForeign`
  const right = 'give it as vcluster patch prints it without --reverse, or the virtual object beside it'
  return `it is no host object of ${name}: it lacks the annotation ${nameMark} and what goes with it; ${right} (--virtual-object, input.yaml)`
}

/** Whether the syncer would take anything back from a host object. */
function standing(
  { virtualObject, hostObject }: ReverseObjects,
  { name, namespace, config }: PreviewOptions,
): Pick<Preview, 'problem' | 'notes'> {
  const { metadata } = hostObject as unknown as EndpointsObject
  const virtual = (virtualObject as unknown as EndpointsObject | null)?.metadata
  const ref = virtual ? { namespace: virtual.namespace ?? '', name: virtual.name ?? '' } : virtualRefOf(metadata, name)
  if (!ref) return { notes: [] }
  const vcluster = { name, namespace, mapped: mappingOf(config) }
  const owner = ownershipOf(metadata, { vcluster, ref, kind: 'Endpoints', uid: virtual?.uid })
  if (owner === 'ours') return { notes: [] }
  if (owner.reason !== 'unmarked')
    return { problem: `HostObjectForeign: it was not created by the syncer: ${owner.why}`, notes: [] }
  return {
    notes: [
      "the host object lacks the syncer's marks: the syncer would leave it alone (HostObjectForeign), and nothing would come back from it",
    ],
  }
}

/** Labels and annotations come back from the host; everything else of the virtual object stays. */
export async function previewToVirtual(objects: ReverseObjects, options: PreviewOptions): Promise<Preview> {
  const { virtualObject, hostObject } = objects
  const { metadata, ...rest } = hostObject as unknown as EndpointsObject
  const virtual = virtualObject as unknown as EndpointsObject | null
  const known = virtualRefOf(metadata, options.name) ?? {}
  const { labels: _, annotations: __, ...own } = virtual?.metadata ?? (known as Metadata)
  const back: Metadata = { ...own, ...crossing(metadata, crossesBy(options.config)) }
  const plain = { ...rest, ...virtual, metadata: back } as unknown as JsonObject
  const { patcher } = watched(options)
  const patched = await patcher?.toVirtual({ virtualObject, hostObject, object: plain })
  const { labels, annotations } = ((patched?.object ?? plain) as unknown as EndpointsObject).metadata
  const object = { ...plain, metadata: { ...back, ...(labels && { labels }), ...(annotations && { annotations }) } }
  const trace = patched?.trace ?? []
  const { problem, notes } = standing(objects, options)
  return {
    object: object as unknown as JsonObject,
    plain,
    trace,
    referents: patched?.referents ?? [],
    ...(patched?.problem && { problem: `PatchFailed: ${problemTexts(patched.problem).logged}` }),
    ...(problem === undefined ? {} : { problem }),
    notes: [...notes, ...trace.flatMap(unmatched), ...trace.flatMap(lostChanges)],
  }
}

const crossesBy = ({ sync }: Config): KeyPolicy => {
  const { allowedMetadataKeys: allowed, deniedMetadataKeys: denied } = sync.toHost.endpoints
  return keyPolicy({ allowed, denied })
}

function crossing(
  { labels = {}, annotations = {} }: Metadata,
  crosses: KeyPolicy,
): Pick<Metadata, 'labels' | 'annotations'> {
  const those = (map: { readonly [key: string]: string }) =>
    Object.fromEntries(Object.entries(map).filter(([key]) => crosses(key)))
  const maps = { labels: those(labels), annotations: those(annotations) }
  return Object.fromEntries(Object.entries(maps).filter(([, map]) => Object.keys(map).length))
}

/** A label that does not arrive looks like a mistake in a patch. */
function keysThatStay(object: JsonObject, config: Config): string[] {
  const { metadata } = object as unknown as EndpointsObject
  const crosses = crossesBy(config)
  return (['labels', 'annotations'] as const).flatMap(part =>
    Object.keys(metadata[part] ?? {})
      .filter(key => !neverCrosses(key) && !crosses(key))
      .map(
        key => `metadata.${part}[${JSON.stringify(key)}] does not go to the host (allowedMetadataKeys may allow it)`,
      ),
  )
}

function lostChanges({ index, changes }: Step): string[] {
  return changes
    .filter(({ path }) => !/^metadata\.(labels|annotations)\b|^$|^metadata$/.test(path))
    .map(({ path }) => `patch ${index} at ${path}: only labels and annotations flow back, so this has no effect`)
}

/** No failure, for objects differ; but a path that was mistyped looks just so. */
function unmatched({ index, path, isUnmatched, skipped: [first] }: Step): string[] {
  if (!isUnmatched) return []
  const isHeld = first?.reason === protectedReason
  const why = first ? ` (${isHeld ? first.path : `${first.path} ${first.reason}`.trim()})` : ''
  const what = isHeld ? 'only what is protected' : 'nothing in this object'
  return [`patch ${index} at ${path} matches ${what}${why}, so it does nothing`]
}

function mappingOf(config: Config) {
  const { enabled, mappings } = config.sync.toHost.namespaces
  return enabled ? namespaceMap(mappings.byName) : undefined
}

/** A patcher whose last result towards the host can be seen. */
function watched(options: PreviewOptions): {
  readonly patcher: Patcher | undefined
  readonly seen: { last?: Patched }
} {
  const { config, name, namespace, sandbox } = options
  const patches = config.sync.toHost.endpoints.patches as readonly Patch[]
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
