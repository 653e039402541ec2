// `?omitData=true`: secrets with the names of their keys, but without values. Such a response is not a read of the data (D35).

import { fieldPath, readAt, writeAt } from '../api/field-path.ts'
import type { Kind } from '../api/kind.ts'
import { emptyMap, isObject, type JsonObject, type Metadata, type Resource } from '../api/object.ts'
import { type Document, documentOf } from '../api/resources.ts'
import { type Exchange, isSet } from '../serving/exchange.ts'
import type { ResourceInfo } from './request-info.ts'
import type { Result } from './verbs.ts'

/** For reads and writes of secrets. A subresource, such as a version of the history, is never without its data. */
export const omitsData = ({ query }: Exchange, { kind, verb, subresource }: ResourceInfo): boolean =>
  kind.keepsLastRead && !subresource && verbs.includes(verb) && isSet(query, 'omitData')

const verbs = ['get', 'list', 'create', 'update', 'patch']

export function withoutData(result: Result, exchange: Exchange, info: ResourceInfo): Result {
  if (!omitsData(exchange, info)) return result
  const { kind } = info
  if (result.type === 'document') return { ...result, document: omitted(result.document, kind) }
  if (result.type === 'list')
    return { ...result, list: { ...result.list, items: result.list.items.map(document => omitted(document, kind)) } }
  return result
}

/** Not base64, so no write accepts it: an object that was read this way cannot replace the stored one by mistake. */
const placeholder = '(omitted)'

function omitted({ object }: Document, kind: Kind): Document {
  const whole = object as unknown as JsonObject
  const shown = kind.sealed.map(fieldPath).reduce((rest, path) => {
    const value = readAt(rest, path)
    return value === undefined ? rest : writeAt(rest, path, isObject(value) ? keysAlone(value) : undefined)
  }, whole)
  const { metadata } = shown as unknown as Resource
  return documentOf({ ...(shown as unknown as Resource), metadata: withoutManifests(metadata) })
}

/** Tools copy whole manifests into annotations. */
function withoutManifests({ annotations, ...rest }: Metadata): Metadata {
  if (!annotations) return rest
  const kept = Object.entries(annotations).filter(([key]) => !key.endsWith('last-applied-configuration'))
  return kept.length ? { ...rest, annotations: Object.fromEntries(kept) } : rest
}

function keysAlone(map: JsonObject): JsonObject {
  const names = emptyMap<string>()
  for (const key of Object.keys(map)) names[key] = placeholder
  return names
}
