// The client library, `platform-plane/client`: connect to a server, take a kind, and work with its objects by their types.

import type { Kind, KindOf } from '../api/kind.ts'
import type { Json, Resource } from '../api/object.ts'
import type { DeleteOptions, PatchBody, Resources, Selection, WriteOptions } from '../api/resources.ts'
import { connect as connectResources, type Fetch } from './connect.ts'
import { follow, listAll } from './list-watch.ts'
import { type RetryOptions, retrying } from './retry.ts'

export { ApiError } from '../api/errors.ts'

export type Options = {
  /** Instead of the global one: for an own CA, a proxy, or a test. */
  readonly fetch?: Fetch
  readonly retry?: RetryOptions
  /** Told of the server's warnings. */
  readonly warn?: (text: string) => void
}

/** The type of a kind's objects, as its schema says. */
export type ObjectOf<K extends Kind> = K extends KindOf<infer O> ? (unknown extends O ? Resource : O) : Resource
/** The same while it is being written: the server fills in the rest. */
type Partly<O> = O extends { readonly spec?: infer S }
  ? { readonly metadata?: Resource['metadata']; readonly spec?: S }
  : { readonly metadata?: Resource['metadata'] }
export type Event<O> = { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: O }
type In = { readonly namespace?: string }
type Write = In & Omit<WriteOptions, 'warn' | 'duplicates'>

export type Collection<O> = {
  get(name: string, options?: In): Promise<O>
  /** Every object, page after page. */
  list(selection?: Selection): AsyncGenerator<O>
  /** What there is, then every change; goes on after a broken connection. Leaving the loop ends it. */
  watch(selection?: Selection & { readonly signal?: AbortSignal }): AsyncGenerator<Event<O>>
  create(object: Partly<O>, options?: Write): Promise<O>
  /** The object carries the resourceVersion it was read at: a stale one is ApiError 409. */
  update(object: O, options?: Write): Promise<O>
  patch(name: string, patch: PatchBody, options?: Write): Promise<O>
  delete(name: string, options?: In & DeleteOptions): Promise<void>
  /** POST to a subresource, such as `rotate` of an access key. */
  act(name: string, subresource: string, body?: Json, options?: Write): Promise<O>
}

export type Client = {
  of<K extends Kind>(kind: K): Collection<ObjectOf<K>>
  /** Every verb on every kind, as the rest of this program uses it. */
  readonly resources: Resources
}

/** Reads are tried again with growing pauses; writes only where the server says that nothing happened. */
export function connect(url: string, key: string, options: Options = {}): Client {
  checkPlace(url, key)
  const { fetch = globalThis.fetch as Fetch, retry = {}, warn } = options
  const resources = connectResources({ url, key, fetch: retrying(fetch, retry), ...(warn ? { warn } : {}) })
  return { resources, of: kind => collection(resources, kind) }
}

/** What a variable that was not filled, or filled with something else, would fail of later and less plainly. No key is repeated. */
function checkPlace(url: string, key: string): void {
  // In a browser an address without a host is one of the page's own server.
  const { location } = globalThis as { readonly location?: { readonly href: string } }
  if (!URL.canParse(url, location?.href) || (!location && !/^https?:/i.test(url)))
    throw new TypeError('the server must be a URL, such as https://plane.example:8443')
  if (/@https?:|#sha256:/i.test(key))
    throw new TypeError(
      'the key is a connection, KEY@URL#sha256:FINGERPRINT, as the command line takes it: hand over URL and KEY apart, and the CA with NODE_EXTRA_CA_CERTS or an own fetch',
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
