// Client library `platform-plane/client`: typed access to the objects of a server.

import type { Kind, KindOf } from '../api/kind.ts'
import type { Json, Resource } from '../api/object.ts'
import type { DeleteOptions, PatchBody, Resources, Selection, WriteOptions } from '../api/resources.ts'
import { connect as connectResources, type Fetch } from './connect.ts'
import { follow, listAll } from './list-watch.ts'
import { type RetryOptions, retrying } from './retry.ts'

export { ApiError } from '../api/errors.ts'

export type Options = {
  /** Replaces the global fetch, for a private CA, a proxy or a test. */
  readonly fetch?: Fetch
  readonly retry?: RetryOptions
  /** Receives the warnings of the server. */
  readonly warn?: (text: string) => void
}

/** The object type of a kind, derived from its schema. */
export type ObjectOf<K extends Kind> = K extends KindOf<infer O> ? (unknown extends O ? Resource : O) : Resource
/** Input of a create: the server sets the other fields. */
type CreateInput<O> = O extends { readonly spec?: infer S }
  ? { readonly metadata?: Resource['metadata']; readonly spec?: S }
  : { readonly metadata?: Resource['metadata'] }
export type Event<O> = { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: O }
type In = { readonly namespace?: string }
type Write = In & Omit<WriteOptions, 'warn' | 'duplicates'>

export type Collection<O> = {
  get(name: string, options?: In): Promise<O>
  /** All objects, page by page. */
  list(selection?: Selection): AsyncGenerator<O>
  /** All objects as ADDED, then every change. Reconnects automatically. Leaving the loop stops the watch. */
  watch(selection?: Selection & { readonly signal?: AbortSignal }): AsyncGenerator<Event<O>>
  create(object: CreateInput<O>, options?: Write): Promise<O>
  /** Throws ApiError 409 if the object's resourceVersion is stale. */
  update(object: O, options?: Write): Promise<O>
  patch(name: string, patch: PatchBody, options?: Write): Promise<O>
  delete(name: string, options?: In & DeleteOptions): Promise<void>
  /** POST to a subresource, such as `rotate` of an access key. */
  act(name: string, subresource: string, body?: Json, options?: Write): Promise<O>
}

export type Client = {
  of<K extends Kind>(kind: K): Collection<ObjectOf<K>>
  /** Untyped access: every verb on every kind. */
  readonly resources: Resources
}

/** Retries reads with back-off, and writes only if the server reports that nothing was written. */
export function connect(url: string, key: string, options: Options = {}): Client {
  checkArguments(url, key)
  const { fetch = globalThis.fetch as Fetch, retry = {}, warn } = options
  const resources = connectResources({ url, key, fetch: retrying(fetch, retry), ...(warn ? { warn } : {}) })
  return { resources, of: kind => collection(resources, kind) }
}

/** Fails early for unset or wrong variables. Messages never contain the key. */
function checkArguments(url: string, key: string): void {
  // In a browser, a URL may be relative to the page.
  const { location } = globalThis as { readonly location?: { readonly href: string } }
  if (!URL.canParse(url, location?.href) || (!location && !/^https?:/i.test(url)))
    throw new TypeError('the server must be a URL, such as https://plane.example:8443')
  if (/@https?:|#sha256:/i.test(key))
    throw new TypeError(
      'the key is a connection string, KEY@URL#sha256:FINGERPRINT: pass URL and KEY separately, and the CA with NODE_EXTRA_CA_CERTS or a custom fetch',
    )
  if (!key) throw new TypeError('the key is empty')
}

function collection<O>(resources: Resources, kind: Kind): Collection<O> {
  const at = (name: string, { namespace = '' }: In = {}) => ({ namespace, name })
  const typed = ({ object }: { readonly object: Resource }) => object as unknown as O
  const plain = ({ namespace: _, ...rest }: Write = {}) => rest
  return {
    get: async (name, options) => typed(await resources.get(kind, at(name, options))),
    list: selection => listAll(resources, kind, selection) as AsyncGenerator<O>,
    watch: selection => follow(resources, kind, selection) as AsyncGenerator<Event<O>>,
    async create(object, options = {}) {
      const namespace = options.namespace ?? object.metadata?.namespace ?? ''
      return typed(await resources.create(kind, namespace, object as Json, plain(options)))
    },
    async update(object, options = {}) {
      const { metadata } = object as unknown as Resource
      const ref = at(metadata.name ?? '', { namespace: options.namespace ?? metadata.namespace ?? '' })
      return typed(await resources.update(kind, ref, object as unknown as Json, plain(options)))
    },
    patch: async (name, patch, options) => typed(await resources.patch(kind, at(name, options), patch, plain(options))),
    async delete(name, { namespace = '', ...options } = {}) {
      await resources.delete(kind, { namespace, name }, options)
    },
    act: async (name, subresource, body, options) =>
      typed(await resources.act(kind, at(name, options), subresource, body, plain(options))),
  }
}
