// OpenAPI v2 and v3 documents, made once from the kinds, and the pages that serve them with their hashes (wire §1.4).

import { createHash } from 'node:crypto'
import type { Kind } from '../api/kind.ts'
import type { JsonObject } from '../api/object.ts'
import { pathOf, prefix } from '../api/paths.ts'
import type { Exchange } from '../serving/exchange.ts'
import type { Answer } from '../serving/respond.ts'
import { openapiProtobuf } from './openapi-protobuf.ts'
import { type Dialect, deleteOptionsName, schemaName, schemasOf, statusName } from './openapi-schemas.ts'
import { writeJson } from './write-result.ts'

const v2: Dialect = { version: 2, ref: name => `#/definitions/${name}` }
const v3: Dialect = { version: 3, ref: name => `#/components/schemas/${name}` }
const info = { title: 'platform', version: 'v1' }
const year = 365 * 24 * 3600 * 1000

/** Made for the first who asks: a server that starts has other things to do. */
export function openapiPages(
  kinds: readonly Kind[],
  now: () => number,
): (path: string, exchange: Exchange) => Answer | undefined {
  let made: Documents | undefined
  return (path, exchange) => {
    if (!path.startsWith('/openapi/')) return undefined
    made ??= documentsOf(kinds.filter(kind => kind.served))
    const { index, old, documents } = made
    if (path === '/openapi/v3') return writeJson(200, index, 'json', exchange)
    if (path === '/openapi/v2') return serveV2(old, exchange)
    const at = /^\/openapi\/v3\/(.+)$/.exec(path)?.[1]
    const found = at === undefined ? undefined : documents.get(at)
    return found && serveV3(found, at as string, exchange, now())
  }
}

type Documents = ReturnType<typeof documentsOf>

function documentsOf(served: readonly Kind[]) {
  const documents = new Map(
    [...Map.groupBy(served, kind => (kind.group ? `apis/${kind.group}/${kind.version}` : `api/${kind.version}`))].map(
      ([at, own]) => [at, seal(document3(own))],
    ),
  )
  const index = {
    paths: Object.fromEntries(
      [...documents].map(([at, { hash }]) => [at, { serverRelativeURL: `${prefix}/openapi/v3/${at}?hash=${hash}` }]),
    ),
  }
  const old = document2(served)
  let protobuf: Sealed | undefined
  const readProtobuf = () => {
    protobuf ??= sealBytes(openapiProtobuf(old))
    return protobuf
  }
  return { documents, index, old: { json: seal(old), protobuf: readProtobuf } }
}

type Sealed = { readonly body: Buffer; readonly hash: string }

const seal = (document: JsonObject): Sealed => sealBytes(Buffer.from(JSON.stringify(document)))

const sealBytes = (body: Buffer): Sealed => ({
  body,
  hash: createHash('sha512').update(body).digest('hex').toUpperCase(),
})

const protobufAccept = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf'
const protobufType = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf'

/** Kubernetes' name, and the one of its content type. */
const isProtobuf = (accept: string) => accept.startsWith(protobufAccept) || accept.startsWith(protobufType)

/** kubectl reads v2 only as protobuf: for lists, for `explain` of older versions and for validation without v3. */
function serveV2({ json, protobuf }: Documents['old'], { request }: Exchange): Answer {
  const [type, { body, hash }] = isProtobuf(request.headers.accept ?? '')
    ? [protobufType, protobuf()]
    : ['application/json', json]
  return { code: 200, type, body, headers: { ETag: `"${hash}"`, Vary: 'Accept' } }
}

function serveV3({ body, hash }: Sealed, at: string, { query, request }: Exchange, now: number): Answer {
  const requestedHash = query.get('hash')
  const headers = { ETag: `"${hash}"`, Vary: 'Accept' }
  if (requestedHash !== null && requestedHash !== hash)
    return {
      code: 301,
      type: 'application/json',
      body: Buffer.alloc(0),
      headers: { Location: `${prefix}/openapi/v3/${at}?hash=${hash}` },
    }
  if (request.headers['if-none-match'] === headers.ETag)
    return { code: 304, type: 'application/json', body: Buffer.alloc(0), headers }
  const forever =
    requestedHash === null ? {} : { 'Cache-Control': 'public, immutable', Expires: new Date(now + year).toUTCString() }
  return { code: 200, type: 'application/json', body, headers: { ...headers, ...forever } }
}

function document3(kinds: readonly Kind[]): JsonObject {
  const schemas = schemasOf(kinds, v3)
  return { openapi: '3.0.0', info, paths: paths(kinds, v3), components: { schemas } }
}

function document2(kinds: readonly Kind[]): JsonObject {
  return { swagger: '2.0', info, paths: paths(kinds, v2), definitions: schemasOf(kinds, v2) }
}

const booleans = ['allowWatchBookmarks', 'force', 'orphanDependents', 'sendInitialEvents', 'watch']
const integers = ['gracePeriodSeconds', 'limit', 'timeoutSeconds']

const patchTypes = ['application/json-patch+json', 'application/merge-patch+json', 'application/apply-patch+yaml']
const bodyTypes = ['application/json', 'application/yaml']

function paths(kinds: readonly Kind[], dialect: Dialect): JsonObject {
  const all: { [path: string]: JsonObject } = {}
  for (const kind of kinds) {
    const namespace = kind.namespaced ? '{namespace}' : ''
    const collection = decodeURIComponent(pathOf(kind, { namespace }))
    all[collection] = operations(kind, collection, false, dialect)
    // kubectl looks for a PATCH with fieldValidation on every kind it creates, served or not (wire §0).
    all[`${collection}/{name}`] = operations(kind, `${collection}/{name}`, true, dialect)
    if (kind.statusSubresource)
      all[`${collection}/{name}/status`] = operations(kind, `${collection}/{name}/status`, true, dialect)
    if (kind.namespaced) all[pathOf(kind, {})] = { get: operation(kind, 'list', '', dialect) }
  }
  return all
}

const actions = {
  get: ['get', 'list'],
  post: [undefined, 'post'],
  put: ['put', undefined],
  patch: ['patch', undefined],
  delete: ['delete', 'deletecollection'],
} as const
const verbOf: { readonly [action: string]: string } = { post: 'create', put: 'update' }

function operations(kind: Kind, path: string, named: boolean, dialect: Dialect): JsonObject {
  const out: { [method: string]: JsonObject } = {}
  for (const [method, [one, many]] of Object.entries(actions)) {
    const action = named ? one : many
    const has = action !== undefined && (kind.verbs as readonly string[]).includes(verbOf[action] ?? action)
    const ofStatus = path.endsWith('/status')
    if (has && !(ofStatus && action === 'delete')) out[method] = operation(kind, action, path, dialect)
    else if (action === 'patch' && !ofStatus) out[method] = operation(kind, action, path, dialect)
  }
  return out
}

function operation(kind: Kind, action: string, path: string, dialect: Dialect): JsonObject {
  const isList = action === 'list' || action === 'deletecollection'
  const answer = action === 'delete' ? statusName : isList ? `${schemaName(kind)}List` : schemaName(kind)
  const sent =
    action === 'delete' || action === 'deletecollection'
      ? deleteOptionsName
      : action === 'post' || action === 'put'
        ? schemaName(kind)
        : undefined
  const types = action === 'patch' ? patchTypes : bodyTypes
  const shape = (name: string | undefined): JsonObject => (name ? { $ref: dialect.ref(name) } : { type: 'object' })
  const content = (of: readonly string[], schema: JsonObject) => Object.fromEntries(of.map(type => [type, { schema }]))
  const hasBody = sent !== undefined || action === 'patch'
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(match => match[1] as string)
  const parameters = [
    ...names.map(name => parameter(name, 'path', dialect)),
    ...queryOf(action).map(name => parameter(name, 'query', dialect)),
    ...(hasBody && dialect.version === 2
      ? [{ name: 'body', in: 'body', required: action !== 'delete', schema: shape(sent) }]
      : []),
  ]
  const ok =
    dialect.version === 2
      ? { description: 'OK', schema: shape(answer) }
      : { description: 'OK', content: content(bodyTypes, shape(answer)) }
  return {
    description: `${action} ${kind.kind}`,
    operationId: `${action}${kind.group ? '' : 'Core'}${schemaName(kind).replace(/\W/g, '')}${path.endsWith('/status') ? 'Status' : ''}${path === '' ? 'ForAllNamespaces' : ''}`,
    ...(dialect.version === 2 ? { consumes: [...types], produces: [...bodyTypes] } : {}),
    parameters,
    ...(hasBody && dialect.version === 3
      ? { requestBody: { content: content(types, shape(sent)), required: action !== 'delete' } }
      : {}),
    responses: { [action === 'post' ? '201' : '200']: ok },
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': { group: kind.group, kind: kind.kind, version: kind.version },
  }
}

function queryOf(action: string): readonly string[] {
  if (action === 'post' || action === 'put') return ['dryRun', 'fieldManager', 'fieldValidation', 'pretty']
  if (action === 'patch') return ['dryRun', 'fieldManager', 'fieldValidation', 'force', 'pretty']
  if (action === 'list' || action === 'deletecollection')
    return [
      'allowWatchBookmarks',
      'continue',
      'fieldSelector',
      'labelSelector',
      'limit',
      'resourceVersion',
      'resourceVersionMatch',
      'sendInitialEvents',
      'timeoutSeconds',
      'watch',
    ]
  if (action === 'delete') return ['dryRun', 'gracePeriodSeconds', 'orphanDependents', 'propagationPolicy']
  return ['pretty', 'resourceVersion']
}

function parameter(name: string, place: 'path' | 'query', dialect: Dialect): JsonObject {
  const type = booleans.includes(name) ? 'boolean' : integers.includes(name) ? 'integer' : 'string'
  const common = { name, in: place, ...(place === 'path' ? { required: true } : {}) }
  return dialect.version === 2
    ? { ...common, type, uniqueItems: true }
    : { ...common, schema: { type, uniqueItems: true } }
}
