// No answer shows more than get would show its caller: a write by someone who may not get is answered with metadata alone (D6).

import type { Caller } from '../api/caller.ts'
import { emptyMap, type JsonObject, type Resource } from '../api/object.ts'
import { type Document, documentOf } from '../api/resources.ts'
import type { Authorizer } from '../auth/authz/authorize.ts'
import type { ResourceInfo } from './request-info.ts'
import type { Result } from './verbs.ts'

export function redactResponse(result: Result, { kind }: ResourceInfo, caller: Caller, authorizer: Authorizer): Result {
  if (!kind.stored || result.type === 'status') return result
  const seen = (document: Document): Document => {
    const { namespace, name } = document.ref
    const get = { verb: 'get', target: { group: kind.group, resource: kind.plural, namespace, name } }
    // By role, or by the object that is shown: another one may have its name by now. It is read only where no role allows it.
    return authorizer.decide(caller, get, () => document.object).allowed ? document : bare(document)
  }
  if (result.type === 'document') return { ...result, document: seen(result.document) }
  return { ...result, list: { ...result.list, items: result.list.items.map(seen) } }
}

/**
 * kubectl copies whole manifests into annotations, managedFields holds the values of sets, and annotations of the server
 * name teams that the object is shared with. None of them is metadata in this sense.
 */
function bare({ object }: Document): Document {
  const { annotations, managedFields: _, ...metadata } = object.metadata
  const kept = emptyMap()
  for (const [key, value] of Object.entries(annotations ?? {}))
    if (!key.endsWith('last-applied-configuration') && !key.startsWith('platform.sh/')) kept[key] = value
  const shown = { ...metadata, ...(Object.keys(kept).length ? { annotations: kept } : {}) } as unknown as JsonObject
  return documentOf({ apiVersion: object.apiVersion, kind: object.kind, metadata: shown } as unknown as Resource)
}
