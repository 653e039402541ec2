// Labels and annotations that the syncer writes: ownership, and the base of the next metadata merge.

import { createHash } from 'node:crypto'
import { emptyMap, isObject, type Metadata, type Ref, type Resource } from '../../api/object.ts'
import { METADATA_PREFIX } from './names.ts'

/** On the virtual object: why it is not in sync. */
export const conditionsAnnotation = `${METADATA_PREFIX}conditions`
/** On the virtual object: the uid of its host object, for hostDeletePolicy Propagate. */
export const hostUidAnnotation = `${METADATA_PREFIX}host-uid`

/** On an imported object: its source on the host. */
export const importedAnnotation = `${METADATA_PREFIX}imported-from`

/** On a copy of any other kind than ConfigMap and Secret: hash of the copied content. */
export const sourceHashAnnotation = `${METADATA_PREFIX}source-hash`

export const nameAnnotation = `${METADATA_PREFIX}object-name`
export const mark = {
  vclusterNamespace: `${METADATA_PREFIX}vcluster-namespace`,
  name: nameAnnotation,
  namespace: `${METADATA_PREFIX}object-namespace`,
  uid: `${METADATA_PREFIX}object-uid`,
  kind: `${METADATA_PREFIX}object-kind`,
  hostName: `${METADATA_PREFIX}object-host-name`,
  hostNamespace: `${METADATA_PREFIX}object-host-namespace`,
  managed: `${METADATA_PREFIX}managed-annotations`,
}
export const managedBy = `${METADATA_PREFIX}managed-by`
const namespaceLabel = `${METADATA_PREFIX}namespace`

type Map = { readonly [key: string]: string }

/** Labels that name a deployment tool, not another syncer. */
export const generalManagers = new Set([
  'app.kubernetes.io/managed-by',
  'endpoints.kubernetes.io/managed-by',
  'endpointslice.kubernetes.io/managed-by',
])

export function syncMetadataOf(
  virtual: Resource,
  host: Ref,
  vcluster: { readonly name: string; readonly namespace: string },
): { readonly labels: Map; readonly annotations: Map } {
  const { name = '', namespace = '', uid = '' } = virtual.metadata
  return {
    labels: { [managedBy]: vcluster.name, [namespaceLabel]: namespace },
    annotations: {
      [mark.vclusterNamespace]: vcluster.namespace,
      [mark.name]: name,
      [mark.namespace]: namespace,
      [mark.uid]: uid,
      [mark.kind]: virtual.kind,
      [mark.hostName]: host.name,
      [mark.hostNamespace]: host.namespace,
    },
  }
}

/** The virtual object that a host object claims to belong to. ownership.ts decides whether that is true. */
export function virtualRefOf({ annotations = {}, labels = {} }: Metadata, vcluster: string): Ref | undefined {
  const [name, namespace] = [annotations[mark.name], annotations[mark.namespace]]
  // The label alone is not enough: the host's own controllers copy labels from services.
  if (!name || namespace === undefined || labels[managedBy] !== vcluster) return undefined
  return { namespace, name }
}

export const virtualUidOf = ({ annotations = {} }: Metadata): string | undefined => annotations[mark.uid]

/** Hashes of a key's values on both sides at the last sync; absent if the key did not exist. */
export type Seen = { readonly virtual?: string; readonly host?: string }
export type Base = {
  readonly labels: { readonly [key: string]: Seen }
  readonly annotations: { readonly [key: string]: Seen }
}

export const hashOf = (value: string): string => createHash('sha256').update(value).digest('hex').slice(0, 12)

/** Writes one hash if both sides are equal, otherwise both, with '' for absent. */
export function writeBase({ labels, annotations }: Base): Map {
  const packed = (part: Base['labels']) =>
    Object.fromEntries(
      Object.entries(part)
        .toSorted(([a], [b]) => (a < b ? -1 : 1))
        .map(([key, { virtual = '', host = '' }]) => [key, virtual === host ? virtual : `${virtual}/${host}`]),
    )
  return { [mark.managed]: JSON.stringify({ annotations: packed(annotations), labels: packed(labels) }) }
}

/** Returns undefined if the annotation is missing or invalid. */
export function readBase({ annotations = {} }: Metadata): Base | undefined {
  try {
    const value: unknown = JSON.parse(annotations[mark.managed] ?? '')
    if (!isObject(value)) return undefined
    return { labels: unpacked(value['labels']), annotations: unpacked(value['annotations']) }
  } catch {
    return undefined
  }
}

function unpacked(part: unknown): Base['labels'] {
  const seen = emptyMap<Seen>()
  if (!isObject(part)) return seen
  for (const [key, text] of Object.entries(part)) {
    if (typeof text !== 'string') continue
    const [virtual = '', host = virtual] = text.split('/')
    seen[key] = { ...(virtual ? { virtual } : {}), ...(host ? { host } : {}) }
  }
  return seen
}
