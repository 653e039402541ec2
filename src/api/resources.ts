// The keystone: every verb on every kind, already bound to a caller. The registry implements it in process, the
// client over HTTP; controllers, informer, command line and tests are written against it and never learn which they hold.

import type { Candidates } from './candidates.ts'
import { canonical } from './encode.ts'
import type { Status } from './errors.ts'
import type { Kind } from './kind.ts'
import type { Json, Metadata, Ref, Resource } from './object.ts'
import { parseOnce, parseStored } from './parse-cache.ts'

/** An object, its JSON and its place; what is not there yet is made when first asked for. None is ever written to. */
export type Document = {
  readonly json: Uint8Array
  readonly object: Resource
  readonly ref: Ref
  /** Answers that are no objects, such as reviews, have none. */
  readonly uid: string | undefined
}

export type WriteOptions = {
  readonly dryRun?: boolean
  readonly fieldManager?: string
  /** Default Warn. */
  readonly fieldValidation?: 'Ignore' | 'Warn' | 'Strict'
  /** Duplicate keys that decoding found, as texts; treated as unknown fields are. */
  readonly duplicates?: readonly string[]
  /** Told of everything a person should know though the write goes through. */
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

/** Gone at once, or still there with a deletionTimestamp (D10). */
export type Deleted = { readonly status: Status } | { readonly document: Document }

/** Keeps the objects a caller may see where not all may be seen (`only(filter)`, D27). */
export type Filter = (object: Resource) => boolean

/**
 * Throws unless a request may change this stored object; undefined: it is gone. For requests whose right comes from the
 * object itself.
 */
export type TargetCheck = (stored: Resource | undefined) => void

export type Selection = {
  /** '' or absent: every namespace. */
  readonly namespace?: string
  readonly labelSelector?: string
  readonly fieldSelector?: string
  readonly only?: Filter
  /** The objects that `only` can keep now, found by an index; undefined: any. */
  readonly among?: () => Candidates | undefined
  /** Calls back whenever `only` may answer differently; answers how to stop that. For watches. */
  readonly refilter?: (again: () => void) => () => void
}

export type ListOptions = Selection & {
  readonly limit?: number
  readonly continue?: string
  readonly resourceVersion?: string
  readonly resourceVersionMatch?: string
}

export type List = {
  readonly items: readonly Document[]
  readonly resourceVersion: string
  readonly continue?: string
  readonly remainingItemCount?: number
}

export type WatchOptions = Selection & {
  readonly resourceVersion?: string
  readonly resourceVersionMatch?: string
  readonly allowWatchBookmarks?: boolean
  readonly sendInitialEvents?: boolean
}

/** `line` is the event as watch clients read it, made once however many watch. */
export type WatchEvent = {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR'
  readonly document: Document
  readonly line: Uint8Array
}

export interface Watch {
  /**
   * The next events, in order, at least one; undefined once the watch has ended. A watch that cannot go on says so
   * with one ERROR event, whose object is a Status, and ends.
   */
  next(): Promise<readonly WatchEvent[] | undefined>
  /** A bookmark with the revision up to which everything was handed out. */
  bookmark(): WatchEvent
  /** Ends the watch; a pending `next` answers undefined. */
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
  /** Items and resourceVersion are of one moment; pages of one list show one moment (`continue`). */
  list(kind: Kind, options?: ListOptions): Promise<List>
  watch(kind: Kind, options?: WatchOptions): Promise<Watch>
  /** Replaces; the object carries the resourceVersion it was read at. No change: same resourceVersion, no event. */
  update(kind: Kind, ref: Ref, object: Json, options?: WriteOptions): Promise<Document>
  /** An apply may create; `created` tells. */
  patch(
    kind: Kind,
    ref: Ref,
    patch: PatchBody,
    options?: WriteOptions,
  ): Promise<Document & { readonly created?: boolean }>
  /** POST to a subresource of an object, such as a key's rotation. */
  act(kind: Kind, ref: Ref, subresource: string, body: Json | undefined, options?: WriteOptions): Promise<Document>
  delete(kind: Kind, ref: Ref, options?: DeleteOptions): Promise<Deleted>
  /** Not atomic; answers the objects as they were. */
  deleteCollection(kind: Kind, selection: ListOptions, options?: DeleteOptions): Promise<List>
}

/** A review may come without metadata. */
export const refOf = ({ metadata }: { readonly metadata?: Metadata }): Ref => ({
  namespace: metadata?.namespace ?? '',
  name: metadata?.name ?? '',
})

const encoder = new TextEncoder()

// Documents and events are made for every answer. They are classes, against the house's habit, because an object
// literal with a getter costs a call into the engine each time, and a page has 500 of them.

class Made implements Document {
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

class Stored implements Document {
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

/** Written with sorted keys, as objects are stored, so that an object has the same bytes by whichever door it leaves. */
export const documentOf = (object: Resource, write: (object: Json) => string = canonical): Document =>
  new Made(object, write)
/** `ref`, `uid`: its place and identity, where they are known without parsing it. */
export const documentFrom = (json: Uint8Array, ref?: Ref, uid?: string): Document =>
  new Stored(json, ref, uid, parseOnce)
/** Of bytes that lie in a store and are read by many. */
export const storedDocument = (json: Uint8Array, ref: Ref): Document => new Stored(json, ref, undefined, parseStored)
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
