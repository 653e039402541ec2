// Applies one write of a plan and classifies its errors.

import { canonical } from '../../api/codec.ts'
import { ApiError, isNotFound } from '../../api/errors.ts'
import type { Kind } from '../../api/kind.ts'
import type { Json, Ref } from '../../api/object.ts'
import type { Resources } from '../../api/resources.ts'
import type { ReferencedObject } from '../patch/reference.ts'
import type { SyncFailure } from './condition.ts'
import type { SyncedObject } from './kinds.ts'
import type { Write } from './plan.ts'

const manager = { fieldManager: 'platform-vcluster-sync' }

/** Returns the object after the write, or undefined if it is deleted. Preconditions prevent deleting a newer object. */
export async function perform(
  { to, kind }: { readonly to: Resources; readonly kind: Kind },
  at: Ref,
  { verb, object }: Write,
): Promise<SyncedObject | undefined> {
  if (verb === 'delete') {
    const { uid, resourceVersion } = object.metadata
    const preconditions = { ...(uid ? { uid } : {}), ...(resourceVersion ? { resourceVersion } : {}) }
    const answer = await to.delete(kind, at, { preconditions }).catch(missing)
    const left = answer && 'document' in answer ? answer.document.object : undefined
    return left?.metadata.deletionTimestamp ? (left as SyncedObject) : undefined
  }
  const body = object as unknown as Json
  const written =
    verb === 'create' ? await to.create(kind, at.namespace, body, manager) : await to.update(kind, at, body, manager)
  return written.object as SyncedObject
}

/** Whether the server stored the metadata unchanged. If a webhook changed it, the object needs another pass. */
export function isAsSent({ verb, object }: Write, left: SyncedObject | undefined): boolean {
  if (verb === 'delete' || !left) return left === undefined
  const sent = ({ metadata: { labels = {}, annotations = {} } }: SyncedObject) =>
    canonical({ labels, annotations } as unknown as Json)
  return sent(object) === sent(left)
}

export const isConflict = (error: unknown) => isNotFound(error) || (error instanceof ApiError && error.code === 409)
const missing = (error: unknown) => {
  if (isNotFound(error)) return undefined
  throw error
}

type Refs = { readonly host: Ref; readonly ref: Ref }

/** Returns undefined for errors that a retry may fix. */
export function syncFailureOf(error: unknown, verb: Write['verb'], refs: Refs): SyncFailure | undefined {
  // A 404 on create means that the namespace is missing.
  if (isNotFound(error) && verb === 'create')
    return { reason: 'HostRefused', message: 'its namespace does not exist on the host', logged: error.message }
  return permanentFailure(error, verb, refs)
}

/** For objects that a patch references, on either side. */
export function referenceFailure(error: unknown, referenced: ReferencedObject): SyncFailure | undefined {
  const { kind, namespace, name, hostNamespace, hostName } = referenced
  const refs = { host: { namespace: hostNamespace, name: hostName }, ref: { namespace, name } }
  const syncFailure = permanentFailure(error, 'read or write', refs)
  return (
    syncFailure && {
      ...syncFailure,
      reason: 'ReferenceFailed',
      message: `${kind} ${namespace}/${name}: ${syncFailure.message}`,
    }
  )
}

const askOperator = 'ask the operator of the host; the log of the syncer has the cause'

/** The server's message may name users, namespaces and webhooks of the host, so it only goes to the log. */
function permanentFailure(error: unknown, doing: string, refs: Refs): SyncFailure | undefined {
  if (!(error instanceof ApiError)) return undefined
  const { code, message: logged } = error
  if (code === 403)
    return { reason: 'HostForbidden', message: `the syncer has no permission to ${doing} it: ${askOperator}`, logged }
  if (code === 413) return { reason: 'HostRefused', message: 'it is too large for the host', logged }
  if (code !== 422 && code !== 400) return undefined
  return {
    reason: 'HostRefused',
    message: `the host rejected it: ${fieldsOf(error, refs) ?? askOperator}`,
    logged,
  }
}

const hostDetails = /webhook|admission|system:|ownerReferences/i

/** Formats the invalid fields with the tenant's names. Returns undefined if that would reveal names of the host. */
function fieldsOf({ status, message: whole }: ApiError, { host, ref }: Refs): string | undefined {
  const causes = (status.details?.causes ?? []).filter(({ field }) => field)
  const text = causes
    .map(({ field, message }) => `${field}: ${message}`)
    .join(', ')
    .replaceAll(host.name, ref.name)
  const isNamed = host.namespace !== ref.namespace && text.includes(host.namespace)
  return text === '' || isNamed || hostDetails.test(whole) || hostDetails.test(text) ? undefined : text
}
