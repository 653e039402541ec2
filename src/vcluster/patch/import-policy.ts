// Decides whether a host object may be imported into the virtual cluster.

import { isObject, type Json, type JsonObject } from '../../api/object.ts'
import { METADATA_PREFIX } from '../sync/names.ts'
import { readAt } from './edit.ts'
import type { ReferencedObject } from './reference.ts'

export type ImportRequest = {
  readonly referenced: ReferencedObject
  readonly hostObject: JsonObject | null
  readonly virtualExists: boolean
  readonly vcluster: { readonly name: string }
  /** Entries of `--import-allow`: `Secret`, or `Secret/` and the name on the host. */
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
  return apiVersion === 'v1' && kind === 'Secret' ? secretDenied(hostObject, referenced, allow) : undefined
}

function secretDenied(
  secret: JsonObject,
  { hostName }: ReferencedObject,
  allow: readonly string[],
): string | undefined {
  const type = secret['type']
  if (typeof type === 'string' && neverSyncedTypes.test(type)) return `Secrets of type ${type} are never imported`
  if (readAt(secret, ['metadata', 'annotations', 'kubernetes.io/service-account.name']) !== undefined)
    return 'Secrets of service accounts are never imported'
  if (allow.includes('Secret') || allow.includes(`Secret/${hostName}`)) return undefined
  return `--import-allow does not list it: Secret, or Secret/${hostName}`
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
