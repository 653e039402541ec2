// Defines Resources, the client interface of every verb on every kind.
// The registry implements it in process and src/client over HTTP, so controllers, informers, commands and tests work
// with both.

import type { Candidates } from './candidates.ts'
import { canonical } from './encode.ts'
import type { Status } from './errors.ts'
import type { Kind } from './kind.ts'
import type { Json, Metadata, Ref, Resource } from './object.ts'
import { parseOnce, parseStored } from './parse-cache.ts'

/** An object with its JSON and reference. Missing parts are computed on first use. Immutable. */
export type Document = {
  readonly json: Uint8Array
  readonly object: Resource
  readonly ref: Ref
  /** Absent for responses that are not stored objects, such as reviews. */
  readonly uid: string | undefined
}

export type WriteOptions = {
  readonly dryRun?: boolean
  readonly fieldManager?: string
  /** Default Warn. */
  readonly fieldValidation?: 'Ignore' | 'Warn' | 'Strict'
  /** Duplicate keys found while decoding. Handled like unknown fields. */
  readonly duplicates?: readonly string[]
  /** Receives warnings for the client. The write succeeds. */
  readonly warn?: (text: string) => void
  readonly subresource?: string
}

export type PatchBody =
  | { readonly type: 'json' | 'merge' | 'strategic'; readonly body: Json }
  | { readonly type: 'apply'; readonly body: Json; readonly force: boolean }

export type DeleteOptions = {
  readonly dryRun?: boolean
  readonly gracePeriodSeconds?: number
  readonly propagationPolicy?: 'Background' | 'Foreground' | 'Orphan'
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string }
}

/** Deleted at once, or still stored with a deletionTimestamp (D10). */
export type Deleted = { readonly status: Status } | { readonly document: Document }

/** Selects the objects that a caller may see (`only(filter)`, D27). */
export type Filter = (object: Resource) => boolean

/**
 * Throws unless the request may change this stored object; undefined: it does not exist. For requests whose permission
 * comes from the object itself.
 */
export type TargetCheck = (stored: Resource | undefined) => void

/** The permission of a write, which the registry checks again before each attempt. */
export type WriteCheck = {
  /** Throws if the caller has lost the permission, or has other permissions, since the request was authorized. */
  readonly caller: () => void
  readonly target?: TargetCheck | undefined
}

export type Selection = {
  /** '' or absent: every namespace. */
  readonly namespace?: string
  readonly labelSelector?: string
  readonly fieldSelector?: string
  readonly only?: Filter
  /** The objects that `only` may keep now, from an index; undefined: all. */
  readonly among?: () => Candidates | undefined
  /** Calls back when the result of `only` may change, and returns a function to stop that. For watches. */
  readonly refilter?: (again: () => void) => () => void
}

export type ListOptions = Selection & {
  readonly limit?: number
  readonly continue?: string
  readonly resourceVersion?: string
  readonly resourceVersionMatch?: string
  /** Receives warnings for the client, for example that a part of the list is missing. */
  readonly warn?: (text: string) => void
}

export type List = {
  readonly items: readonly Document[]
  readonly resourceVersion: string
  readonly continue?: string
  readonly remainingItemCount?: number
}

export type WatchOptions = Selection & {
  /** A subresource of one object, instead of a collection. */
  readonly of?: { readonly name: string; readonly subresource: string }
  readonly resourceVersion?: string
  readonly resourceVersionMatch?: string
  readonly allowWatchBookmarks?: boolean
  readonly sendInitialEvents?: boolean
}

/** `line`: the encoded event, shared by all watches. */
export type WatchEvent = {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR'
  readonly document: Document
  readonly line: Uint8Array
}

export interface Watch {
  /**
   * The next events in order, at least one; undefined after the end of the watch. A watch that cannot continue ends
   * with an ERROR event whose object is a Status.
   */
  next(): Promise<readonly WatchEvent[] | undefined>
  /** A bookmark with the revision of the last returned event. */
  bookmark(): WatchEvent
  /** Ends the watch. A pending `next` resolves to undefined. */
  stop(): void
}

export interface Resources {
  /** Needs `name` or generateName in the object. Throws AlreadyExists, Invalid. */
  create(kind: Kind, namespace: string, object: Json, options?: WriteOptions): Promise<Document>
  get(
    kind: Kind,
    ref: Ref,
    options?: { readonly resourceVersion?: string; readonly subresource?: string },
  ): Promise<Document>
  /** Items and resourceVersion belong to one revision. All pages of one list show that revision (`continue`). */
  list(kind: Kind, options?: ListOptions): Promise<List>
  watch(kind: Kind, options?: WatchOptions): Promise<Watch>
  /**
   * Replaces the object. It must have the resourceVersion that the client read. Without a change, no new
   * resourceVersion and no event.
   */
  update(kind: Kind, ref: Ref, object: Json, options?: WriteOptions): Promise<Document>
  /** An apply may create the object; then `created` is set. */
  patch(
    kind: Kind,
    ref: Ref,
    patch: PatchBody,
    options?: WriteOptions,
  ): Promise<Document & { readonly created?: boolean }>
  /** POST to a subresource of an object, such as the rotation of a key. */
  act(kind: Kind, ref: Ref, subresource: string, body: Json | undefined, options?: WriteOptions): Promise<Document>
  delete(kind: Kind, ref: Ref, options?: DeleteOptions): Promise<Deleted>
  /** Not atomic. Returns the deleted objects. */
  deleteCollection(kind: Kind, selection: ListOptions, options?: DeleteOptions): Promise<List>
}

/** A review may lack metadata. */
export const refOf = ({ metadata }: { readonly metadata?: Metadata }): Ref => ({
  namespace: metadata?.namespace ?? '',
  name: metadata?.name ?? '',
})

const encoder = new TextEncoder()

// Documents and events are classes, unlike most of this code, because the server creates them for every response. An
// object literal with a getter is slower, and a page has 500 of them.

class NewDocument implements Document {
  readonly object: Resource
  #write: (object: Json) => string
  #json: Uint8Array | undefined
  constructor(object: Resource, write: (object: Json) => string) {
    this.object = object
    this.#write = write
  }
  get json(): Uint8Array {
    this.#json ??= encoder.encode(this.#write(this.object as unknown as Json))
    return this.#json
  }
  get uid(): string | undefined {
    return this.object.metadata?.uid
  }
  get ref(): Ref {
    return refOf(this.object)
  }
}

class StoredDocument implements Document {
  readonly json: Uint8Array
  #ref: Ref | undefined
  #uid: string | undefined
  #object: Resource | undefined
  #parse: (json: Uint8Array) => Resource
  constructor(json: Uint8Array, ref: Ref | undefined, uid: string | undefined, parse: (json: Uint8Array) => Resource) {
    this.json = json
    this.#parse = parse
    this.#ref = ref
    this.#uid = uid
  }
  get uid(): string | undefined {
    return this.#uid ?? this.object.metadata?.uid
  }
  get ref(): Ref {
    return this.#ref ?? refOf(this.object)
  }
  get object(): Resource {
    this.#object ??= this.#parse(this.json)
    return this.#object
  }
}

class Event implements WatchEvent {
  readonly type: WatchEvent['type']
  readonly document: Document
  #line: Uint8Array | undefined
  constructor(type: WatchEvent['type'], document: Document) {
    this.type = type
    this.document = document
  }
  get line(): Uint8Array {
    this.#line ??= frame(this.type, this.document.json)
    return this.#line
  }
}

/** Encodes with sorted keys like stored objects, so that every response has the same bytes. */
export const documentOf = (object: Resource, write: (object: Json) => string = canonical): Document =>
  new NewDocument(object, write)
/** `ref`, `uid`: pass them if known, which saves parsing. */
export const documentFrom = (json: Uint8Array, ref?: Ref, uid?: string): Document =>
  new StoredDocument(json, ref, uid, parseOnce)
/** For stored bytes, which have many readers. */
export const storedDocument = (json: Uint8Array, ref: Ref): Document =>
  new StoredDocument(json, ref, undefined, parseStored)
export const watchEvent = (type: WatchEvent['type'], document: Document): WatchEvent => new Event(type, document)

/** A Status where an object is expected, as in the ERROR event of a watch. */
export const statusDocument = (status: Status): Document => documentOf(status as unknown as Resource, JSON.stringify)

const heads = Object.fromEntries(
  (['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR'] as const).map(type => [
    type,
    encoder.encode(`{"type":"${type}","object":`),
  ]),
) as { readonly [type in WatchEvent['type']]: Uint8Array }

function frame(type: WatchEvent['type'], json: Uint8Array): Uint8Array {
  const head = heads[type]
  const line = new Uint8Array(head.length + json.length + 2)
  line.set(head)
  line.set(json, head.length)
  line[line.length - 2] = 0x7d // }
  line[line.length - 1] = 0x0a // \n
  return line
}
