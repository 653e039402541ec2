// Implements `Resources` over HTTP.

import { ApiError, badRequest, type Status } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import type { Json, Ref, Resource } from '../api/object.ts'
import { pathOf, prefix } from '../api/paths.ts'
import {
  type DeleteOptions,
  type Document,
  documentFrom,
  documentOf,
  type List,
  type PatchBody,
  type Resources,
  type Selection,
  type WriteOptions,
} from '../api/resources.ts'
import { readWarnings } from './read-warnings.ts'
import { errorOf } from './response-error.ts'
import { readWatch } from './watch-reader.ts'

/** The used part of `fetch`, so that tests and transports can replace it. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>

export type ConnectOptions = {
  /** Base URL of the server (D1). */
  readonly url: string
  /** Path between the base URL and /api or /apis; '' for other Kubernetes API servers. */
  readonly below?: string
  /** Bearer key of every request; absent if `fetch` authenticates. */
  readonly key?: string
  readonly fetch: Fetch
  /** Receives warnings of requests without their own `warn`. */
  readonly warn?: (text: string) => void
  /** Media type instead of JSON. `itemsIn` then finds the objects in a list response. */
  readonly accept?: string
  readonly itemsIn?: (answer: unknown) => readonly Resource[] | undefined
}

type Call = {
  readonly method?: string
  readonly kind: Kind
  readonly at?: { readonly namespace?: string; readonly name?: string; readonly subresource?: string }
  readonly query?: { readonly [name: string]: string | number | boolean | undefined }
  readonly body?: Json
  readonly type?: string
  readonly warn?: ((text: string) => void) | undefined
  readonly signal?: AbortSignal
}

export function connect(options: ConnectOptions): Resources {
  const { url, below = prefix, key, fetch, warn, accept = 'application/json', itemsIn = itemsOf } = options
  const base = url.replace(/\/+$/, '') + below

  /** Throws the server's error for any response that is not a success. */
  async function call({ method = 'GET', kind, at = {}, query = {}, body, type, ...rest }: Call): Promise<Response> {
    checkNames(kind, at)
    const headers = {
      Accept: accept,
      ...(key === undefined ? {} : { Authorization: `Bearer ${key}` }),
      ...(body === undefined ? {} : { 'Content-Type': type ?? 'application/json' }),
    }
    const response = await fetch(base + pathOf(kind, at) + queryString(query), {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(rest.signal ? { signal: rest.signal } : {}),
    })
    const onWarning = rest.warn ?? warn
    if (onWarning) for (const text of readWarnings(response.headers.get('warning'))) onWarning(text)
    if (!response.ok) throw await errorOf(response)
    return response
  }

  return {
    async create(kind, namespace, object, options = {}) {
      const at = { namespace: namespaceOf(kind, namespace) }
      const query = writeQuery(options)
      return document(await call({ method: 'POST', kind, at, query, body: object, warn: options.warn }))
    },

    async act(kind, ref, subresource, body, options = {}) {
      const at = locationOf(kind, ref, subresource)
      const query = writeQuery(options)
      return document(await call({ method: 'POST', kind, at, query, body: body ?? {}, warn: options.warn }))
    },

    async get(kind, ref, { resourceVersion, subresource } = {}) {
      return document(await call({ kind, at: locationOf(kind, ref, subresource), query: { resourceVersion } }))
    },

    async list(kind, options = {}) {
      const at = { namespace: kind.namespaced ? (options.namespace ?? '') : '' }
      const { limit, continue: next, resourceVersion, resourceVersionMatch } = options
      const query = { ...selectionQuery(options), limit, continue: next, resourceVersion, resourceVersionMatch }
      return list(await call({ kind, at, query }), itemsIn)
    },

    async watch(kind, options = {}) {
      const at = { namespace: kind.namespaced ? (options.namespace ?? '') : '' }
      const { resourceVersion, resourceVersionMatch, allowWatchBookmarks, sendInitialEvents } = options
      const query = {
        ...selectionQuery(options),
        watch: true,
        resourceVersion,
        resourceVersionMatch,
        allowWatchBookmarks,
        sendInitialEvents,
      }
      const ending = new AbortController()
      const response = await call({ kind, at, query, signal: ending.signal })
      return readWatch(response.body, { kind, from: resourceVersion ?? '0', abort: () => ending.abort() })
    },

    async update(kind, ref, object, options = {}) {
      const at = locationOf(kind, ref, options.subresource)
      const query = writeQuery(options)
      return document(await call({ method: 'PUT', kind, at, query, body: object, warn: options.warn }))
    },

    async patch(kind, ref, patch, options = {}) {
      const at = locationOf(kind, ref, options.subresource)
      const query = { ...writeQuery(options), ...(patch.type === 'apply' && patch.force ? { force: true } : {}) }
      const type = patchTypes[patch.type]
      const response = await call({ method: 'PATCH', kind, at, query, body: patch.body, type, warn: options.warn })
      const patched = await document(response)
      return response.status === 201 ? created(patched) : patched
    },

    async delete(kind, ref, options = {}) {
      const at = locationOf(kind, ref)
      const answer = await document(await call({ method: 'DELETE', kind, at, body: deleteBody(options) }))
      return answer.object.kind === 'Status' ? { status: answer.object as unknown as Status } : { document: answer }
    },

    async deleteCollection(kind, selection, options = {}) {
      const at = { namespace: kind.namespaced ? (selection.namespace ?? '') : '' }
      const { limit, continue: next, resourceVersion, resourceVersionMatch } = selection
      const query = { ...selectionQuery(selection), limit, continue: next, resourceVersion, resourceVersionMatch }
      return list(await call({ method: 'DELETE', kind, at, query, body: deleteBody(options) }), itemsOf)
    },
  }
}

const patchTypes: { readonly [type in PatchBody['type']]: string } = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  apply: 'application/apply-patch+yaml',
  strategic: 'application/strategic-merge-patch+json',
}

/** An empty namespace means `default` for namespaced kinds (SPEC §2.2). */
const namespaceOf = (kind: Kind, namespace: string) => (kind.namespaced ? namespace || 'default' : '')
function locationOf(kind: Kind, { namespace, name }: Ref, subresource = '') {
  if (name === '') throw badRequest(`the name of a ${kind.singular} is empty`)
  return { namespace: namespaceOf(kind, namespace), name, ...(subresource ? { subresource } : {}) }
}

/** URL normalization would remove `.` and `..`, and the request would address the whole collection. */
function checkNames(kind: Kind, { namespace, name }: NonNullable<Call['at']>): void {
  for (const [what, text] of [
    ['namespace', namespace],
    [kind.singular, name],
  ])
    if (text === '.' || text === '..') throw badRequest(`"${text}" is not a valid name for a ${what}`)
}

function queryString(query: NonNullable<Call['query']>): string {
  const set = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined) set.set(name, String(value))
  return set.size ? `?${set}` : ''
}

/** Omits duplicate key detection: the body is serialized from an object, which has none. */
function writeQuery({ dryRun, fieldManager, fieldValidation }: WriteOptions): NonNullable<Call['query']> {
  return { dryRun: dryRun ? 'All' : undefined, fieldManager, fieldValidation }
}

function selectionQuery({ labelSelector, fieldSelector, only }: Selection): NonNullable<Call['query']> {
  if (only) throw new TypeError('a filter function cannot be sent to a server: `only` works only in process')
  return { labelSelector, fieldSelector }
}

function deleteBody({ dryRun, ...options }: DeleteOptions): Json {
  return { ...options, ...(dryRun ? { dryRun: ['All'] } : {}) }
}

const newline = 0x0a

async function document(response: Response): Promise<Document> {
  const bytes = new Uint8Array(await response.arrayBuffer())
  return documentFrom(bytes.at(-1) === newline ? bytes.subarray(0, -1) : bytes)
}

const created = (document: Document) => Object.assign(document, { created: true })

const itemsOf = (answer: unknown) => (answer as { readonly items?: readonly Resource[] }).items

async function list(response: Response, itemsIn: typeof itemsOf): Promise<List> {
  const answer = (await response.json()) as { readonly metadata: Omit<List, 'items'> }
  const items = itemsIn(answer)
  if (!Array.isArray(items)) throw new ApiError(500, 'InternalError', 'the response of the server is not a list')
  return { ...answer.metadata, items: items.map(item => documentOf(item)) }
}
