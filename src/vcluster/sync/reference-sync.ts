// Syncs objects that patches reference: from the virtual cluster to the host, or as an import from the host if that is
// allowed (SPEC §2.10).

import { isNotFound } from '../../api/errors.ts'
import type { Kind } from '../../api/kind.ts'
import type { JsonObject, OwnerReference, Ref } from '../../api/object.ts'
import type { Resources } from '../../api/resources.ts'
import { defaultKeyPolicy, type KeyPolicy } from '../config/metadata-keys.ts'
import { groupKindOf, isSyncedByCluster, showKind } from '../config/reference-kinds.ts'
import { importDenied, isListedByName, neverSyncedTypes } from '../patch/import-policy.ts'
import { type ReferencedObject, showReferenced } from '../patch/reference.ts'
import { isForbidden } from './api-errors.ts'
import { SyncFailureError } from './condition.ts'
import { contentOf, type DataObject, writeCopy } from './copy-object.ts'
import type { Vcluster } from './host-ref.ts'
import { METADATA_PREFIX } from './names.ts'
import { ownershipOf } from './ownership.ts'
import { openReferencedKinds, type ReferencedKind, type ReferencedKindOptions } from './referenced-kinds.ts'
import type { SyncReference } from './resolve-references.ts'
import { importedAnnotation, syncMetadataOf } from './sync-annotations.ts'
import { hostAnnotations, hostLabels } from './translate.ts'

export type ReferenceSyncOptions = ReferencedKindOptions & {
  readonly virtual: Resources
  readonly host: Resources
  readonly vcluster: Vcluster
  readonly owner: OwnerReference | undefined
  /** Objects that may be imported from the host: `KIND`, `KIND/NAME` or `KIND/PREFIX*`. */
  readonly importAllow: readonly string[]
  /** Which labels and annotations are synced; default: those that no well-known controller acts on. */
  readonly isSyncedKey?: KeyPolicy | undefined
}

export type ReferenceSync = {
  readonly sync: SyncReference
  /** Whether a name means the host's object of that name, so that a patch must not translate it. */
  readonly isImportedByName: (referenced: ReferencedObject) => Promise<boolean>
}

export function openReferenceSync(options: ReferenceSyncOptions): ReferenceSync {
  const { virtual, host, vcluster, importAllow } = options
  const findKind = openReferencedKinds(options)

  async function sync(referenced: ReferencedObject): Promise<string | undefined> {
    const named = showReferenced(referenced)
    const groupKind = groupKindOf(referenced)
    if (isSyncedByCluster(groupKind)) return undefined
    const synced = await findKind(referenced)
    if (typeof synced === 'string') return `${named} is not synced to the host: ${synced}`
    const { kind } = synced
    const [ref, hostRef] = refsOf(referenced)
    const [here, there] = await Promise.all([read(virtual, kind, ref), read(host, kind, hostRef)])
    const pair = { referenced, synced, ref, hostRef, here, there }
    const isOwn = here !== undefined && !isImport(here, referenced)
    // The tenant created it after the plan: the next check translates the name.
    if (isOwn && referenced.isImport) return undefined
    if (isOwn) return push({ ...pair, here }, options)
    const missing = `${named} does not exist in the virtual cluster`
    if (!there) {
      if (here) await remove(virtual, kind, ref, here)
      return missing
    }
    const owner = ownershipOf(there.metadata, { vcluster, ref, kind: kind.kind, uid: here?.metadata.uid })
    // The virtual object was deleted: delete its copy.
    if (owner === 'ours' && !here) {
      await remove(host, kind, hostRef, there)
      return missing
    }
    const question = { referenced, hostObject: there as unknown as JsonObject, virtualExists: false, vcluster }
    const why = importDenied({ ...question, allow: importAllow })
    if (why) throw notImported(pair, why)
    const annotations = { ...here?.metadata.annotations, [importedAnnotation]: sourceOf(hostRef) }
    const copy = { to: virtual, at: ref, kind: synced, content: contentOf(there, synced), current: here }
    await writeCopy({ ...copy, metadata: { annotations } })
    return undefined
  }

  async function isImportedByName(referenced: ReferencedObject): Promise<boolean> {
    const { name, hostNamespace } = referenced
    if (vcluster.mapped || !isListedByName(importAllow, referenced, name)) return false
    const synced = await findKind(referenced)
    if (typeof synced === 'string') return false
    const [ref] = refsOf(referenced)
    const here = await read(virtual, synced.kind, ref)
    // An object of the tenant wins.
    if (here && !isImport(here, referenced)) return false
    const there = await readIfAllowed(host, synced.kind, { namespace: hostNamespace, name })
    const byName = { ...referenced, hostName: name, isImport: true as const }
    const hostObject = (there ?? null) as unknown as JsonObject | null
    return (
      importDenied({ referenced: byName, hostObject, virtualExists: false, vcluster, allow: importAllow }) === undefined
    )
  }

  return { sync, isImportedByName }
}

const refsOf = ({ namespace, name, hostNamespace, hostName }: ReferencedObject): readonly [Ref, Ref] => [
  { namespace, name },
  { namespace: hostNamespace, name: hostName },
]
const sourceOf = ({ namespace, name }: Ref) => `${namespace}/${name}`

/** An object of the tenant may have the annotation of an import that it was copied from, so the source must match. */
function isImport({ metadata }: DataObject, { hostNamespace, hostName, name }: ReferencedObject): boolean {
  const source = metadata.annotations?.[importedAnnotation]
  return [hostName, name].some(one => source === sourceOf({ namespace: hostNamespace, name: one }))
}

async function remove(from: Resources, kind: Kind, ref: Ref, { metadata }: DataObject): Promise<void> {
  const { uid = '', resourceVersion = '' } = metadata
  await from.delete(kind, ref, { preconditions: { uid, resourceVersion } })
}

async function read(resources: Resources, kind: Kind, ref: Ref): Promise<DataObject | undefined> {
  try {
    return (await resources.get(kind, ref)).object as DataObject
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}

/** Without permission, the sync of the reference reports it. */
async function readIfAllowed(resources: Resources, kind: Kind, ref: Ref): Promise<DataObject | undefined> {
  return read(resources, kind, ref).catch(error => {
    if (isForbidden(error)) return undefined
    throw error
  })
}

type Pair = {
  readonly referenced: ReferencedObject
  readonly synced: ReferencedKind
  readonly ref: Ref
  readonly hostRef: Ref
  readonly here: DataObject | undefined
  readonly there: DataObject | undefined
}

const syncFailure = (message: string, logged = message) =>
  new SyncFailureError({ reason: 'ReferenceFailed', message, logged })
const hostLabel = ({ referenced, hostRef }: Pair) => `${showKind(groupKindOf(referenced))} ${sourceOf(hostRef)}`
/** The text after the colon may contain names of the host. */
const notImported = (pair: Pair, why: string) =>
  syncFailure(
    `${showReferenced(pair.referenced)} is not imported from the host: ${why.split(':')[0]}`,
    `${hostLabel(pair)} of the host is not imported: ${why}`,
  )

async function push(
  pair: Pair & { readonly here: DataObject },
  { host, vcluster, owner, isSyncedKey = defaultKeyPolicy }: ReferenceSyncOptions,
): Promise<string | undefined> {
  const { referenced, synced, ref, hostRef, here, there } = pair
  const refused = `${showReferenced(referenced)} is not synced to the host`
  if (!synced.isPushed) return `${refused}: the syncer does not sync this kind`
  const claim = { vcluster, ref, kind: synced.kind.kind, uid: here.metadata.uid }
  const owned = there && ownershipOf(there.metadata, claim)
  if (typeof owned === 'object')
    throw syncFailure(
      `${refused}: the existing host object was not created by this syncer`,
      `${hostLabel(pair)} on the host was not created by this syncer: ${owned.why}`,
    )
  const denied = pushDenied(here)
  if (denied) throw syncFailure(`${refused}: ${denied}`)
  const marks = syncMetadataOf(here, hostRef, vcluster)
  // Controllers of the host annotate generic objects, such as claims.
  const kept = (map: { readonly [key: string]: string } = {}) =>
    Object.fromEntries(
      Object.entries(map).filter(([key]) => synced.isGeneric && !isSyncedKey(key) && !key.startsWith(METADATA_PREFIX)),
    )
  const { labels, annotations } = here.metadata
  const metadata = {
    labels: { ...kept(there?.metadata.labels), ...hostLabels(labels, vcluster, isSyncedKey), ...marks.labels },
    annotations: {
      ...kept(there?.metadata.annotations),
      ...hostAnnotations(annotations, isSyncedKey),
      ...marks.annotations,
    },
    ...(owner && hostRef.namespace === vcluster.namespace ? { ownerReferences: [owner] } : {}),
  }
  const content = contentOf(here, synced)
  await writeCopy({ to: host, at: hostRef, kind: synced, content, current: there, metadata })
  return undefined
}

/** The host would add a token of one of its service accounts to such a Secret, and the tenant could read it. */
function pushDenied({ type = '', metadata: { annotations = {} } }: DataObject): string | undefined {
  if (neverSyncedTypes.test(type)) return `Secrets of type ${type} are reserved for the host`
  const mark = Object.keys(annotations).find(key => key.startsWith('kubernetes.io/service-account.'))
  return mark && `the annotation ${mark} has a meaning on the host`
}
