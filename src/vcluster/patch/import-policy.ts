// Whether an object that is only on the host may be brought into the virtual cluster. The syncer asks it; pure.

import { isObject, type Json, type JsonObject } from '../../api/object.ts'
import { MARK } from '../sync/names.ts'
import { readAt } from './edit.ts'
import type { Referent } from './reference.ts'

export type ImportQuestion = {
  readonly referent: Referent
  readonly hostObject: JsonObject | null
  readonly virtualExists: boolean
  readonly vcluster: { readonly name: string }
  /** Kinds, or kind/host-name, e.g. `Secret` or `Secret/v2po30bbi7atc1`: what `--import-allow` lists. */
  readonly allow: readonly string[]
}

/** Credentials of the cluster itself, and Helm's releases with all their values: never, in neither direction. */
export const neverTypes = /^(kubernetes\.io\/service-account-token|bootstrap\.kubernetes\.io\/token|helm\.sh\/.*)$/

/** Answers why not; nothing means yes. */
export function importRefusal({
  referent,
  hostObject,
  virtualExists,
  vcluster,
  allow,
}: ImportQuestion): string | undefined {
  const { apiVersion, kind } = referent
  if (virtualExists) return 'it exists in the virtual cluster, and an import overwrites nothing'
  if (!hostObject) return 'it is not on the host'
  const metadata = (key: string) => readAt(hostObject, ['metadata', key])
  if (hostObject['kind'] !== kind || hostObject['apiVersion'] !== apiVersion) return `it is not a ${apiVersion} ${kind}`
  if (metadata('namespace') !== referent.hostNamespace) return `it is not in namespace ${referent.hostNamespace}`
  if (metadata('name') !== referent.hostName) return `it is not called ${referent.hostName}`
  if (metadata('deletionTimestamp') !== undefined) return 'it is being deleted'
  const owner = ownerOf(metadata('labels'), metadata('annotations'))
  if (owner === vcluster.name) return 'it is a copy that this virtual cluster made'
  if (owner !== undefined) return 'it belongs to another virtual cluster'
  return apiVersion === 'v1' && kind === 'Secret' ? secretRefusal(hostObject, referent, allow) : undefined
}

function secretRefusal(secret: JsonObject, { hostName }: Referent, allow: readonly string[]): string | undefined {
  const type = secret['type']
  if (typeof type === 'string' && neverTypes.test(type)) return `Secrets of type ${type} are never imported`
  if (readAt(secret, ['metadata', 'annotations', 'kubernetes.io/service-account.name']) !== undefined)
    return 'Secrets of service accounts are never imported'
  if (allow.includes('Secret') || allow.includes(`Secret/${hostName}`)) return undefined
  return `--import-allow does not list it: Secret, or Secret/${hostName}`
}

/** Our marks name the owner. Any other syncer's, told by `…/object-name` or a `managed-by` of its own, is somebody else. */
function ownerOf(labels: Json | undefined, annotations: Json | undefined): string | undefined {
  const ours = isObject(labels) ? labels[`${MARK}managed-by`] : undefined
  if (typeof ours === 'string') return ours
  const keys = [labels, annotations].flatMap(map => (isObject(map) ? Object.keys(map) : []))
  const isMark = (key: string) =>
    key.endsWith('/object-name') || (key.endsWith('/managed-by') && key !== 'app.kubernetes.io/managed-by')
  return keys.find(isMark)
}
