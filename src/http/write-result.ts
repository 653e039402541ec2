// From what a verb found to the bytes of its answer, in the view the client asked for. Stored bytes are sent as they are.

import { canonical, writeYaml } from '../api/codec.ts'
import { type Status, statusJson } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import type { Json, JsonObject } from '../api/object.ts'
import type { List } from '../api/resources.ts'
import type { Exchange } from '../serving/exchange.ts'
import { type Answer, errorHeaders } from '../serving/respond.ts'
import type { View } from './negotiate.ts'
import { includeOf, partial, partialList, type TableOptions, table } from './table.ts'
import type { Result } from './verbs.ts'

type Clock = Pick<TableOptions, 'now' | 'lastActivity'>

export function writeResult(result: Result, kind: Kind, view: View, exchange: Exchange, clock: Clock): Answer {
  if (result.type === 'status') return writeJson(200, statusJson(result.status), view.format, exchange)
  if (result.type === 'document') {
    const { code, document } = result
    if (view.as === 'object') {
      if (view.format === 'json' && !isPretty(exchange))
        return { code, type: 'application/json', body: document.json, line: true }
      return writeJson(code, document.object as unknown as Json, view.format, exchange)
    }
    if (view.as === 'PartialObjectMetadata')
      return writeView(code, partial(document.object, kind, view), view, exchange)
    const metadata = { resourceVersion: document.object.metadata.resourceVersion ?? '' }
    return writeView(
      code,
      table([document.object], metadata, { kind, view, include: includeOf(exchange.query), ...clock }),
      view,
      exchange,
    )
  }
  const metadata = listMetadata(result.list)
  if (view.as === 'object' && view.format === 'json' && !isPretty(exchange))
    return { code: 200, type: 'application/json', body: joinList(result.list, kind, metadata) }
  const objects = result.list.items.map(item => item.object)
  if (view.as === 'Table')
    return writeView(
      200,
      table(objects, metadata, { kind, view, include: includeOf(exchange.query), ...clock }),
      view,
      exchange,
    )
  if (view.as === 'PartialObjectMetadataList')
    return writeView(200, partialList(objects, metadata, { kind, view }), view, exchange)
  const list = { apiVersion: kind.apiVersion, items: objects as unknown as Json, kind: `${kind.kind}List`, metadata }
  return writeJson(200, list, view.format, exchange)
}

export function writeError(
  status: Status & { readonly code: number },
  format: View['format'],
  exchange: Exchange,
): Answer {
  return { ...writeJson(status.code, statusJson(status), format, exchange), headers: errorHeaders(status) }
}

function listMetadata({ resourceVersion, remainingItemCount, ...list }: List): JsonObject {
  return {
    ...(list.continue === undefined ? {} : { continue: list.continue }),
    ...(remainingItemCount === undefined ? {} : { remainingItemCount }),
    resourceVersion,
  }
}

const joined = new WeakMap<List, Buffer>()

/** The stored bytes of all items, joined: once for a list, which may be the same for many who ask. */
function joinList(list: List, kind: Kind, metadata: JsonObject): Buffer {
  const body = joined.get(list) ?? join(list, kind, metadata)
  joined.set(list, body)
  return body
}

function join({ items }: List, kind: Kind, metadata: JsonObject): Buffer {
  const head = Buffer.from(`{"apiVersion":${JSON.stringify(kind.apiVersion)},"items":[`)
  const tail = Buffer.from(`],"kind":"${kind.kind}List","metadata":${canonical(metadata)}}\n`)
  let size = head.length + tail.length + Math.max(0, items.length - 1)
  for (const item of items) size += item.json.length
  const body = Buffer.allocUnsafe(size)
  let at = head.copy(body)
  for (const { json } of items) {
    if (at > head.length) body[at++] = 0x2c // ,
    body.set(json, at)
    at += json.length
  }
  tail.copy(body, at)
  return body
}

function writeView(code: number, value: JsonObject, view: View, exchange: Exchange): Answer {
  const answer = writeJson(code, value, view.format, exchange)
  return { ...answer, type: `${answer.type};as=${view.as};v=${view.version};g=meta.k8s.io` }
}

export function writeJson(code: number, value: Json, format: View['format'], exchange: Exchange): Answer {
  if (format === 'yaml') return { code, type: 'application/yaml', body: Buffer.from(writeYaml(value)) }
  const text = isPretty(exchange) ? JSON.stringify(value, null, 2) : JSON.stringify(value)
  return { code, type: 'application/json', body: Buffer.from(`${text}\n`) }
}

/** Indented where a person is likely to read it. */
function isPretty({ query, request }: Exchange): boolean {
  const pretty = query.get('pretty')
  if (pretty !== null) return pretty !== '0' && pretty !== 'false'
  const agent = request.headers['user-agent']
  return typeof agent === 'string' && /^(curl|Wget|Mozilla)\//.test(agent)
}
