// What the syncer writes on host objects about itself: whose they are, and what was synced last. Only this file knows the names.

import { createHash } from 'node:crypto'
import { emptyMap, isObject, type Metadata, type Ref, type Resource } from '../../api/object.ts'
import { MARK } from './names.ts'

/** Condition of an object that is not in sync, on the virtual one. */
export const conditionsMark = `${MARK}conditions`
/** The host object that was made, on the virtual one, where a deletion on the host is to be followed. */
export const hostUidMark = `${MARK}host-uid`

/** Where an object of the virtual cluster came from that is the host's. */
export const importedMark = `${MARK}imported-from`

export const nameMark = `${MARK}object-name`
export const mark = {
  vclusterNamespace: `${MARK}vcluster-namespace`,
  name: nameMark,
  namespace: `${MARK}object-namespace`,
  uid: `${MARK}object-uid`,
  kind: `${MARK}object-kind`,
  hostName: `${MARK}object-host-name`,
  hostNamespace: `${MARK}object-host-namespace`,
  managed: `${MARK}managed-annotations`,
}
export const managedBy = `${MARK}managed-by`
const namespaceLabel = `${MARK}namespace`

type Map = { readonly [key: string]: string }

/** Labels that say who deployed an object, and not that another syncer manages it. */
export const generalManagers = new Set(['app.kubernetes.io/managed-by', 'endpoints.kubernetes.io/managed-by'])

export function marksOf(
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

/** The virtual object that a host object names. ownership.ts decides whether the syncer created it. */
export function virtualRefOf({ annotations = {}, labels = {} }: Metadata, vcluster: string): Ref | undefined {
  const [name, namespace] = [annotations[mark.name], annotations[mark.namespace]]
  // The label alone is not enough: the host's own controllers copy labels from services.
  if (!name || namespace === undefined || labels[managedBy] !== vcluster) return undefined
  return { namespace, name }
}

export const virtualUidOf = ({ annotations = {} }: Metadata): string | undefined => annotations[mark.uid]

/** What a key was on either side when both were last brought in line, as hashes; absent: it was not there. */
export type Seen = { readonly virtual?: string; readonly host?: string }
export type Base = {
  readonly labels: { readonly [key: string]: Seen }
  readonly annotations: { readonly [key: string]: Seen }
}

export const hashOf = (value: string): string => createHash('sha256').update(value).digest('hex').slice(0, 12)

/** One hash where both sides were alike, as they are without patches; else both, '' for absent. */
export function writeBase({ labels, annotations }: Base): Map {
  const packed = (part: Base['labels']) =>
    Object.fromEntries(
      Object.entries(part)
        .toSorted(([a], [b]) => (a < b ? -1 : 1))
        .map(([key, { virtual = '', host = '' }]) => [key, virtual === host ? virtual : `${virtual}/${host}`]),
    )
  return { [mark.managed]: JSON.stringify({ annotations: packed(annotations), labels: packed(labels) }) }
}

/** undefined: there is none, or somebody broke it. */
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
