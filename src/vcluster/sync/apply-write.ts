// Does one write of a plan, and says what an answer that is none means. endpoints.ts calls it.

import { canonical } from '../../api/codec.ts'
import { ApiError } from '../../api/errors.ts'
import type { Json, Ref } from '../../api/object.ts'
import type { Resources } from '../../api/resources.ts'
import type { Referent } from '../patch/reference.ts'
import { isNotFound } from './api-errors.ts'
import type { Trouble } from './condition.ts'
import { Endpoints, type EndpointsObject } from './kinds.ts'
import type { Write } from './plan.ts'

const manager = { fieldManager: 'platform-vcluster-sync' }

/** Answers what is left of the object; undefined: nothing. Deletes what was seen, and nothing else of that name. */
export async function perform(to: Resources, at: Ref, { verb, object }: Write): Promise<EndpointsObject | undefined> {
  if (verb === 'delete') {
    const { uid, resourceVersion } = object.metadata
    const preconditions = { ...(uid ? { uid } : {}), ...(resourceVersion ? { resourceVersion } : {}) }
    const answer = await to.delete(Endpoints, at, { preconditions }).catch(missing)
    const left = answer && 'document' in answer ? answer.document.object : undefined
    return left?.metadata.deletionTimestamp ? (left as EndpointsObject) : undefined
  }
  const body = object as unknown as Json
  const written =
    verb === 'create'
      ? await to.create(Endpoints, at.namespace, body, manager)
      : await to.update(Endpoints, at, body, manager)
  return written.object as EndpointsObject
}

/** Whether the server took it as it was: what it, or somebody on the way, changed has to be looked at. */
export function isAsSent({ verb, object }: Write, left: EndpointsObject | undefined): boolean {
  if (verb === 'delete' || !left) return left === undefined
  const said = ({ metadata: { labels = {}, annotations = {} } }: EndpointsObject) =>
    canonical({ labels, annotations } as unknown as Json)
  return said(object) === said(left)
}

export const isConflict = (error: unknown) => isNotFound(error) || (error instanceof ApiError && error.code === 409)
const missing = (error: unknown) => {
  if (isNotFound(error)) return undefined
  throw error
}

type Place = { readonly host: Ref; readonly ref: Ref }

/** What the host will say again next time; everything else may pass. */
export function troubleOf(error: unknown, verb: Write['verb'], place: Place): Trouble | undefined {
  // What is not there and was to be made is the place for it, and no object that somebody has just removed.
  if (isNotFound(error) && verb === 'create')
    return { reason: 'HostRefused', message: 'the namespace it goes to is not on the host', logged: error.message }
  return refusal(error, verb, place)
}

/** The same for an object that a patch refers to, on whichever side it was refused. */
export function referenceTrouble(error: unknown, referent: Referent): Trouble | undefined {
  const { kind, namespace, name, hostNamespace, hostName } = referent
  const place = { host: { namespace: hostNamespace, name: hostName }, ref: { namespace, name } }
  const trouble = refusal(error, 'read or write', place)
  return (
    trouble && { ...trouble, reason: 'ReferenceFailed', message: `${kind} ${namespace}/${name}: ${trouble.message}` }
  )
}

const askOperator = 'ask whoever runs the host; the log of the syncer says why'

/** A server's own words name users, namespaces and webhooks of the host: they are for the log. */
function refusal(error: unknown, doing: string, place: Place): Trouble | undefined {
  if (!(error instanceof ApiError)) return undefined
  const { code, message: logged } = error
  if (code === 403)
    return { reason: 'HostForbidden', message: `the syncer may not ${doing} it: ${askOperator}`, logged }
  if (code === 413) return { reason: 'HostRefused', message: 'it is too large for the host', logged }
  if (code !== 422 && code !== 400) return undefined
  return {
    reason: 'HostRefused',
    message: `the host does not take it: ${fieldsOf(error, place) ?? askOperator}`,
    logged,
  }
}

const ofTheHost = /webhook|admission|system:|ownerReferences/i

/** What is wrong with which field, in the tenant's own names; undefined: that is not said, or not without names of the host. */
function fieldsOf({ status, message: whole }: ApiError, { host, ref }: Place): string | undefined {
  const causes = (status.details?.causes ?? []).filter(({ field }) => field)
  const text = causes
    .map(({ field, message }) => `${field}: ${message}`)
    .join(', ')
    .replaceAll(host.name, ref.name)
  const isNamed = host.namespace !== ref.namespace && text.includes(host.namespace)
  return text === '' || isNamed || ofTheHost.test(whole) || ofTheHost.test(text) ? undefined : text
}
