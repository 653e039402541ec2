// Resources over HTTP: what the registry does in process, this does from afar. Command line, console and controllers elsewhere call it.

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

/** As much of `fetch` as is used here, so that anything shaped like it will do. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>

export type ConnectOptions = {
  /** The server's base; what comes behind it is added here (D1). */
  readonly url: string
  /** What stands between the base and the Kubernetes-shaped paths; '' for API servers that are not ours. */
  readonly below?: string
  /** Sent as bearer key with every request; absent where `fetch` says who one is. */
  readonly key?: string
  readonly fetch: Fetch
  /** Told of warnings that no write asked for. */
  readonly warn?: (text: string) => void
  /** Asked for instead of JSON; then `itemsIn` finds the objects of a list's answer. */
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

  /** Answers what went well; anything else is the server's own error, thrown. */
  async function call({ method = 'GET', kind, at = {}, query = {}, body, type, ...rest }: Call): Promise<Response> {
    checkNames(kind, at)
    const headers = {
      Accept: accept,
      ...(key === undefined ? {} : { Authorization: `Bearer ${key}` }),
      ...(body === undefined ? {} : { 'Content-Type': type ?? 'application/json' }),
    }
    const response = await fetch(base + pathOf(kind, at) + written(query), {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(rest.signal ? { signal: rest.signal } : {}),
    })
    const tell = rest.warn ?? warn
    if (tell) for (const text of readWarnings(response.headers.get('warning'))) tell(text)
    if (!response.ok) throw await errorOf(response)
    return response
  }

  return {
    async create(kind, namespace, object, options = {}) {
      const at = { namespace: spaceOf(kind, namespace) }
      const query = writeQuery(options)
      return document(await call({ method: 'POST', kind, at, query, body: object, warn: options.warn }))
    },

    async act(kind, ref, subresource, body, options = {}) {
      const at = place(kind, ref, subresource)
      const query = writeQuery(options)
      return document(await call({ method: 'POST', kind, at, query, body: body ?? {}, warn: options.warn }))
    },

    async get(kind, ref, { resourceVersion, subresource } = {}) {
      return document(await call({ kind, at: place(kind, ref, subresource), query: { resourceVersion } }))
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
      const at = place(kind, ref, options.subresource)
      const query = writeQuery(options)
      return document(await call({ method: 'PUT', kind, at, query, body: object, warn: options.warn }))
    },

    async patch(kind, ref, patch, options = {}) {
      const at = place(kind, ref, options.subresource)
      const query = { ...writeQuery(options), ...(patch.type === 'apply' && patch.force ? { force: true } : {}) }
      const type = patchTypes[patch.type]
      const response = await call({ method: 'PATCH', kind, at, query, body: patch.body, type, warn: options.warn })
      const patched = await document(response)
      return response.status === 201 ? created(patched) : patched
    },

    async delete(kind, ref, options = {}) {
      const at = place(kind, ref)
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

/** SPEC §2.2: an empty namespace is `default`; kinds without namespaces have none. */
const spaceOf = (kind: Kind, namespace: string) => (kind.namespaced ? namespace || 'default' : '')
function place(kind: Kind, { namespace, name }: Ref, subresource = '') {
  if (name === '') throw badRequest(`the name of a ${kind.singular} is empty`)
  return { namespace: spaceOf(kind, namespace), name, ...(subresource ? { subresource } : {}) }
}

/** In a path these are not names: what is asked for one object would be asked of all of them. */
function checkNames(kind: Kind, { namespace, name }: NonNullable<Call['at']>): void {
  for (const [what, text] of [
    ['namespace', namespace],
    [kind.singular, name],
  ])
    if (text === '.' || text === '..') throw badRequest(`"${text}" is no name of a ${what}`)
}

function written(query: NonNullable<Call['query']>): string {
  const set = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined) set.set(name, String(value))
  return set.size ? `?${set}` : ''
}

/** Duplicate keys are found where text is read: what is sent from here was an object already. */
function writeQuery({ dryRun, fieldManager, fieldValidation }: WriteOptions): NonNullable<Call['query']> {
  return { dryRun: dryRun ? 'All' : undefined, fieldManager, fieldValidation }
}

function selectionQuery({ labelSelector, fieldSelector, only }: Selection): NonNullable<Call['query']> {
  if (only) throw new TypeError('a filter cannot be sent to a server: `only` works in process alone')
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
  if (!Array.isArray(items)) throw new ApiError(500, 'InternalError', 'the server answered no list')
  return { ...answer.metadata, items: items.map(item => documentOf(item)) }
}
