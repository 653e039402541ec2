// Decides whether a host object may be imported into the virtual cluster.

import { dnsSubdomain } from '../../api/names.ts'
import { isObject, type Json, type JsonObject } from '../../api/object.ts'
import { groupKindOf, type KindName, neverCrosses, parseKind, showKind } from '../config/reference-kinds.ts'
import { METADATA_PREFIX } from '../sync/names.ts'
import { readAt } from './edit.ts'
import type { ReferencedObject } from './reference.ts'

export type ImportRequest = {
  readonly referenced: ReferencedObject
  readonly hostObject: JsonObject | null
  readonly virtualExists: boolean
  readonly vcluster: { readonly name: string }
  /** Entries of `--import-allow`: `KIND`, `KIND/NAME` or `KIND/PREFIX*` with names of the host. */
  readonly allow: readonly string[]
}

/** Cluster credentials and Helm releases are never synced, in either direction. */
export const neverSyncedTypes =
  /^(kubernetes\.io\/service-account-token|bootstrap\.kubernetes\.io\/token|helm\.sh\/.*)$/

/** Returns why the import is denied, or undefined if it is allowed. */
export function importDenied({
  referenced,
  hostObject,
  virtualExists,
  vcluster,
  allow,
}: ImportRequest): string | undefined {
  const { apiVersion, kind } = referenced
  if (virtualExists) return 'it already exists in the virtual cluster'
  if (!hostObject) return 'it does not exist on the host'
  const metadata = (key: string) => readAt(hostObject, ['metadata', key])
  if (hostObject['kind'] !== kind || hostObject['apiVersion'] !== apiVersion) return `it is not a ${apiVersion} ${kind}`
  if (metadata('namespace') !== referenced.hostNamespace) return `it is not in namespace ${referenced.hostNamespace}`
  if (metadata('name') !== referenced.hostName) return `its name is not ${referenced.hostName}`
  if (metadata('deletionTimestamp') !== undefined) return 'it is being deleted'
  const owner = ownerOf(metadata('labels'), metadata('annotations'))
  if (owner === vcluster.name) return 'it is a copy of an object of this virtual cluster'
  if (owner !== undefined) return 'it belongs to another virtual cluster'
  const labels = metadata('labels')
  if (isObject(labels) && (labels['owner'] === 'helm' || labels['OWNER'] === 'TILLER'))
    return 'Helm releases are never imported'
  return (isSecret(referenced) ? secretDenied(hostObject) : undefined) ?? notListed(referenced, allow)
}

const isSecret = ({ apiVersion, kind }: ReferencedObject) => apiVersion === 'v1' && kind === 'Secret'

function secretDenied(secret: JsonObject): string | undefined {
  const type = secret['type']
  if (typeof type === 'string' && neverSyncedTypes.test(type)) return `Secrets of type ${type} are never imported`
  if (readAt(secret, ['metadata', 'annotations', 'kubernetes.io/service-account.name']) !== undefined)
    return 'Secrets of service accounts are never imported'
  return undefined
}

/** A ConfigMap with a translated name needs no entry, and other kinds no name: somebody created it for this reference. */
function notListed(referenced: ReferencedObject, allow: readonly string[]): string | undefined {
  const { apiVersion, kind, name, hostName } = referenced
  if (isListedByName(allow, referenced, hostName)) return undefined
  const shown = showKind(groupKindOf(referenced))
  const isOptional = apiVersion === 'v1' && kind === 'ConfigMap'
  if (
    hostName !== name &&
    (isOptional || allow.some(entry => parsedEntry(entry)?.kind === shown && !entry.includes('/')))
  )
    return undefined
  return `--import-allow does not list it: ${hostName === name ? '' : `${shown}, or `}${shown}/${hostName}`
}

type Entry = { readonly kind: string; readonly name?: string; readonly isPrefix: boolean }

/** Returns undefined if the entry is invalid. */
function parsedEntry(entry: string): Entry | undefined {
  const [kindText = '', name, ...rest] = entry.split('/')
  const kind = parseKind(kindText)
  if (!kind || rest.length) return undefined
  if (name === undefined) return { kind: showKind(kind), isPrefix: false }
  const isPrefix = name.endsWith('*')
  const text = isPrefix ? name.slice(0, -1) : name
  const isValid = text !== '' && (isPrefix ? dnsSubdomain(`${text}a`) : dnsSubdomain(text)).length === 0
  return isValid ? { kind: showKind(kind), name: text, isPrefix } : undefined
}

type Named = { readonly apiVersion: string; readonly kind: string }

/** Whether an entry has this name or its prefix. An entry with only a kind does not count. */
export function isListedByName(allow: readonly string[], referenced: Named, name: string): boolean {
  const shown = showKind(groupKindOf(referenced))
  return allow.some(entry => {
    const one = parsedEntry(entry)
    if (one?.kind !== shown || one.name === undefined) return false
    return one.isPrefix ? name.startsWith(one.name) : name === one.name
  })
}

/** Returns why an entry of --import-allow is refused. `kinds` are the entries of --sync-references. */
export function importAllowProblem(entry: string, kinds: readonly string[]): string | undefined {
  const shown = JSON.stringify(entry.slice(0, 80))
  const parsed = parsedEntry(entry)
  if (!parsed)
    return `--import-allow: ${shown} must be KIND, KIND/NAME or KIND/PREFIX*, such as Secret/shared-ca or Secret/shared-*`
  const kind = parseKind(parsed.kind) as KindName
  const never = neverCrosses(kind)
  if (never) return `--import-allow: ${shown}: objects of this kind never cross: ${never}`
  const synced = ['ConfigMap', 'Secret', ...kinds.flatMap(one => parseKind(one) ?? []).map(showKind)]
  if (synced.includes(parsed.kind)) return undefined
  return `--import-allow: ${shown}: the syncer does not sync this kind; add --sync-references ${parsed.kind}`
}

/** Our label names the owner. `…/object-name` or another `managed-by` means that another syncer owns the object. */
function ownerOf(labels: Json | undefined, annotations: Json | undefined): string | undefined {
  const ours = isObject(labels) ? labels[`${METADATA_PREFIX}managed-by`] : undefined
  if (typeof ours === 'string') return ours
  const keys = [labels, annotations].flatMap(map => (isObject(map) ? Object.keys(map) : []))
  const isSyncerKey = (key: string) =>
    key.endsWith('/object-name') || (key.endsWith('/managed-by') && key !== 'app.kubernetes.io/managed-by')
  return keys.find(isSyncerKey)
}
