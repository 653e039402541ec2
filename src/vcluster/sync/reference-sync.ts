// Syncs ConfigMaps and Secrets that patches reference: from the virtual cluster to the host, or as an import from the host
// if that is allowed (SPEC §2.10).

import { canonical } from '../../api/codec.ts'
import type { Kind } from '../../api/kind.ts'
import type { Json, JsonObject, OwnerReference, Ref, Resource } from '../../api/object.ts'
import type { Resources } from '../../api/resources.ts'
import { defaultKeyPolicy, type KeyPolicy } from '../config/metadata-keys.ts'
import { groupKindOf, isSyncedByCluster, neverCrosses } from '../config/reference-kinds.ts'
import { importDenied, neverSyncedTypes } from '../patch/import-policy.ts'
import { type ReferencedObject, showReferenced } from '../patch/reference.ts'
import { isNotFound } from './api-errors.ts'
import { SyncFailureError } from './condition.ts'
import { ConfigMap, Secret } from './kinds.ts'
import { ownershipOf } from './ownership.ts'
import { importedAnnotation, syncMetadataOf } from './sync-annotations.ts'
import { hostAnnotations, hostLabels, type Vcluster } from './translate.ts'

export type ReferenceSyncOptions = {
  readonly virtual: Resources
  readonly host: Resources
  readonly vcluster: Vcluster
  readonly owner: OwnerReference | undefined
  /** Whether objects of the virtual cluster are synced to the host. */
  readonly pushes: { readonly ConfigMap: boolean; readonly Secret: boolean }
  /** Secrets that may be imported from the host: `Secret` for all, or `Secret/NAME`. */
  readonly importAllow: readonly string[]
  /** Which labels and annotations are synced; default: those that no well-known controller acts on. */
  readonly isSyncedKey?: KeyPolicy | undefined
}

type DataObject = Resource & {
  readonly data?: JsonObject
  readonly binaryData?: JsonObject
  readonly type?: string
  readonly immutable?: boolean
}

const kinds: { readonly [name: string]: Kind } = { 'v1/ConfigMap': ConfigMap, 'v1/Secret': Secret }
const manager = { fieldManager: 'platform-vcluster-sync' }

/** Returns why the reference has no target on the host, as a message for the tenant. Throws SyncFailureError. */
export function openReferenceSync(
  options: ReferenceSyncOptions,
): (referenced: ReferencedObject) => Promise<string | undefined> {
  const { virtual, host, vcluster } = options
  return async referenced => {
    const named = showReferenced(referenced)
    const groupKind = groupKindOf(referenced)
    if (isSyncedByCluster(groupKind)) return undefined
    if (neverCrosses(groupKind)) return `${named} is not synced to the host: this kind never crosses`
    const notSynced = `${named} is not synced to the host: the syncer does not sync this kind`
    const kind = kinds[`${referenced.apiVersion}/${referenced.kind}`]
    if (!kind) return notSynced
    const ref = { namespace: referenced.namespace, name: referenced.name }
    const hostRef = { namespace: referenced.hostNamespace, name: referenced.hostName }
    const [here, there] = await Promise.all([read(virtual, kind, ref), read(host, kind, hostRef)])
    const owner = there && ownershipOf(there.metadata, { vcluster, ref, kind: kind.kind, uid: here?.metadata.uid })
    if (here && here.metadata.annotations?.[importedAnnotation] === undefined) {
      if (!options.pushes[kind.kind as 'Secret']) return notSynced
      if (typeof owner === 'object') throw foreign(kind, { ref, hostRef }, owner.why)
      const denied = pushDenied(here)
      if (denied) throw syncFailure(`${labelOf(kind, ref)} is not synced to the host: ${denied}`)
      await push({ kind, here, there, hostRef }, options)
      return undefined
    }
    const missing = `${named} does not exist in the virtual cluster`
    if (!there) return missing
    // The virtual object was deleted: delete its copy.
    if (owner === 'ours' && !here) {
      await drop(host, kind, hostRef, there)
      return missing
    }
    const question = { referenced, hostObject: there as unknown as JsonObject, virtualExists: false, vcluster }
    const why = importDenied({ ...question, allow: options.importAllow })
    if (why) throw notImported(kind, { ref, hostRef }, why)
    await pull({ kind, here, there, ref, hostRef }, options)
    return undefined
  }
}

/** The host would add a token of one of its service accounts to such a Secret, and the tenant could read it. */
function pushDenied({ type = '', metadata: { annotations = {} } }: DataObject): string | undefined {
  if (neverSyncedTypes.test(type)) return `Secrets of type ${type} are reserved for the host`
  const mark = Object.keys(annotations).find(key => key.startsWith('kubernetes.io/service-account.'))
  return mark && `the annotation ${mark} has a meaning on the host`
}

async function drop(host: Resources, kind: Kind, ref: Ref, { metadata }: DataObject): Promise<void> {
  const { uid = '', resourceVersion = '' } = metadata
  await host.delete(kind, ref, { preconditions: { uid, resourceVersion } })
}

async function read(resources: Resources, kind: Kind, ref: Ref): Promise<DataObject | undefined> {
  try {
    return (await resources.get(kind, ref)).object as DataObject
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}

type Refs = { readonly ref: Ref; readonly hostRef: Ref }

const labelOf = ({ kind }: Kind, { namespace, name }: Ref) => `${kind} ${namespace}/${name}`
const syncFailure = (message: string, logged = message) =>
  new SyncFailureError({ reason: 'ReferenceFailed', message, logged })
const foreign = (kind: Kind, { ref, hostRef }: Refs, why: string) =>
  syncFailure(
    `${labelOf(kind, ref)} is not synced to the host: the existing host object was not created by this syncer`,
    `${labelOf(kind, hostRef)} on the host was not created by this syncer: ${why}`,
  )
/** The text after the colon may contain names of the host. */
const notImported = (kind: Kind, { ref, hostRef }: Refs, why: string) =>
  syncFailure(
    `${labelOf(kind, ref)} is not imported from the host: ${why.split(':')[0]}`,
    `${labelOf(kind, hostRef)} of the host is not imported: ${why}`,
  )

const contentOf = ({ data, binaryData, type, immutable }: DataObject) => ({
  ...(data ? { data } : {}),
  ...(binaryData ? { binaryData } : {}),
  ...(type ? { type } : {}),
  ...(immutable === undefined ? {} : { immutable }),
})
const same = (a: unknown, b: unknown) => canonical(a as Json) === canonical(b as Json)

type Pushed = {
  readonly kind: Kind
  readonly here: DataObject
  readonly there: DataObject | undefined
  readonly hostRef: Ref
}

async function push(
  { kind, here, there, hostRef }: Pushed,
  { host, vcluster, owner, isSyncedKey = defaultKeyPolicy }: ReferenceSyncOptions,
): Promise<void> {
  const marks = syncMetadataOf(here, hostRef, vcluster)
  const metadata = {
    ...hostRef,
    labels: { ...hostLabels(here.metadata.labels, vcluster, isSyncedKey), ...marks.labels },
    annotations: { ...hostAnnotations(here.metadata.annotations, isSyncedKey), ...marks.annotations },
    ...(owner && hostRef.namespace === vcluster.namespace ? { ownerReferences: [owner] } : {}),
  }
  const wanted = { apiVersion: kind.apiVersion, kind: kind.kind, metadata, ...contentOf(here) } as unknown as JsonObject
  if (!there) return void (await host.create(kind, hostRef.namespace, wanted, manager))
  const isSame =
    same(contentOf(there), contentOf(here)) &&
    same(there.metadata.labels ?? {}, metadata.labels) &&
    same(there.metadata.annotations ?? {}, metadata.annotations)
  if (isSame) return
  const { resourceVersion = '' } = there.metadata
  await host.update(
    kind,
    hostRef,
    { ...wanted, metadata: { ...metadata, resourceVersion } as unknown as JsonObject },
    manager,
  )
}

type Pulled = {
  readonly kind: Kind
  readonly here: DataObject | undefined
  readonly there: DataObject
  readonly ref: Ref
  readonly hostRef: Ref
}

async function pull({ kind, here, there, ref, hostRef }: Pulled, { virtual }: ReferenceSyncOptions): Promise<void> {
  const content = contentOf(there)
  if (!here) {
    const metadata = { ...ref, annotations: { [importedAnnotation]: `${hostRef.namespace}/${hostRef.name}` } }
    const object = { apiVersion: kind.apiVersion, kind: kind.kind, metadata, ...content }
    return void (await virtual.create(kind, ref.namespace, object as unknown as Json, manager))
  }
  if (same(contentOf(here), content)) return
  const { data: _, binaryData: __, ...rest } = here
  await virtual.update(kind, ref, { ...rest, ...content } as unknown as Json, manager)
}
