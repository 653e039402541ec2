// No response shows more than get shows its caller. Without get, the response to a write has only metadata (D6), and a read of the
// status subresource has metadata and status.

import type { Caller } from '../api/caller.ts'
import { emptyMap, type JsonObject, type Metadata, type Resource } from '../api/object.ts'
import { type Document, documentOf } from '../api/resources.ts'
import type { Authorizer } from '../auth/authz/authorize.ts'
import type { ResourceInfo } from './request-info.ts'
import type { Result } from './verbs.ts'

export function redactResponse(result: Result, info: ResourceInfo, caller: Caller, authorizer: Authorizer): Result {
  const { kind } = info
  const mayReadStatus = info.verb === 'get' && info.subresource === 'status'
  if (!kind.stored || result.type === 'status') return result
  const seen = (document: Document): Document => {
    const { namespace, name } = document.ref
    const get = { verb: 'get', target: { group: kind.group, resource: kind.plural, namespace, name } }
    // By role, or by the object that is shown: another one may have its name by now. It is read only where no role allows it.
    return authorizer.decide(caller, get, () => document.object).allowed ? document : bare(document, mayReadStatus)
  }
  if (result.type === 'document') {
    const document = seen(result.document)
    return document === result.document ? result : { ...result, document }
  }
  return { ...result, list: { ...result.list, items: result.list.items.map(seen) } }
}

/**
 * kubectl copies whole manifests into annotations, managedFields holds the values of sets, and annotations of the server
 * name teams that the object is shared with. None of them is metadata in this sense.
 */
export function withoutFieldValues({ annotations, managedFields: _, ...metadata }: Metadata): Metadata {
  const kept = emptyMap() as { [key: string]: string }
  for (const [key, value] of Object.entries(annotations ?? {}))
    if (!key.endsWith('last-applied-configuration') && !key.startsWith('platform.sh/')) kept[key] = value
  return { ...metadata, ...(Object.keys(kept).length ? { annotations: kept } : {}) }
}

function bare({ object }: Document, mayReadStatus: boolean): Document {
  const shown = withoutFieldValues(object.metadata) as unknown as JsonObject
  const status = mayReadStatus && object.status ? { status: object.status } : {}
  const { apiVersion, kind } = object
  return documentOf({ apiVersion, kind, metadata: shown, ...status } as unknown as Resource)
}
