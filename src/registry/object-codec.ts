// Encodes objects for storage and decodes them for responses: encryption, decryption and hidden fields (D13, D21, D28).

import type { Shown } from '../api/admission.ts'
import { canonical } from '../api/codec.ts'
import { tooLarge, undecryptable } from '../api/errors.ts'
import { type FieldPath, fieldPath, readAt, writeAt } from '../api/field-path.ts'
import type { Kind } from '../api/kind.ts'
import { isObject, type Json, type JsonObject, type Resource } from '../api/object.ts'
import { parseStored, parseToReplace } from '../api/parse-cache.ts'
import { type Document, documentFrom, documentOf, storedDocument } from '../api/resources.ts'
import { nameOf, SealError } from '../storage/encryption.ts'
import type { Entry, Value } from '../storage/store.ts'
import type { Context, FieldLocation } from './context.ts'
import { packData, unpackData } from './sealed-data.ts'
import { indexTerms } from './visibility-index.ts'

const lastApplied = fieldPath('metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]')
const redacted = '<redacted>'

/** Whether the stored bytes are the response. */
export const isPlain = (kind: Kind): boolean => kind.hidden.length === 0 && kind.sealed.length === 0 && !kind.join

/** The stored object, decrypted and with hidden fields. Not for responses. */
export function load(ctx: Pick<Context, 'sealer'>, kind: Kind, entry: Entry, parse = parseStored): Resource {
  let object = parse(entry.text) as unknown as JsonObject
  for (const text of kind.sealed) {
    const path = fieldPath(text)
    const sealed = readAt(object, path)
    if (sealed !== undefined) object = writeAt(object, path, openAt(ctx, kind, locationOf(kind, object, text), sealed))
  }
  return object as unknown as Resource
}

/** The same, for a write that replaces the object. */
export const loadToReplace = (ctx: Pick<Context, 'sealer'>, kind: Kind, entry: Entry): Resource =>
  load(ctx, kind, entry, parseToReplace)

/** The server never stores these fields unencrypted, so an unencrypted value is an error like a changed one. */
function openAt({ sealer }: Pick<Context, 'sealer'>, kind: Kind, at: FieldLocation, sealed: Json): Json {
  try {
    return parsed(at, sealer.open(at, typeof sealed === 'string' ? sealed : ''))
  } catch (error) {
    throw error instanceof SealError ? undecryptable(kind, at.name, error.message) : error
  }
}

/** Replaces the error of the parser, which would quote the decrypted value. */
function parsed(at: FieldLocation, plaintext: Buffer): Json {
  try {
    return unpackData(plaintext)
  } catch {
    throw new SealError(`${nameOf(at)} cannot be decoded: the decrypted value is not JSON`)
  }
}

const afterRevision = new Set(['resourceVersion', 'uid'])
const beforeRest = new Set(['apiVersion', 'kind', 'metadata'])

/**
 * The bytes to store: encrypted, canonical, with a gap for the revision. `isSealed`: the fields are encrypted already.
 */
export function encode(ctx: Pick<Context, 'sealer'>, kind: Kind, object: Resource, isSealed = false): Value {
  return encodeSized(ctx, kind, object, isSealed).value
}

/** The bytes of a write, limited in size (D72). A stored object above the limit may stay or shrink. */
export function encodeWrite(ctx: Context, kind: Kind, object: Resource, old?: Resource): Value {
  const { value, size } = encodeSized(ctx, kind, object)
  const maxSize = kind.sealed.includes(data) ? 320 * 1024 : 1024 * 1024
  if (size > maxSize && !ctx.isInternal && !(old && size <= encodeSized(ctx, kind, old).size))
    throw tooLarge(
      `Request entity too large: the ${kind.kind} would be stored with ${size} bytes; at most ${maxSize} are allowed${kind.sealed.includes(data) ? ', data not counted' : ''}`,
    )
  return value
}

const data = 'spec.data'

/** `size` is in bytes, without the data of a secret, which has its own limit. */
function encodeSized(
  ctx: Pick<Context, 'sealer'>,
  kind: Kind,
  object: Resource,
  isSealed = false,
): { readonly value: Value; readonly size: number } {
  let sealedObject = object as unknown as JsonObject
  let dataSize = 0
  for (const text of isSealed ? [] : kind.sealed) {
    const path = fieldPath(text)
    const value = readAt(sealedObject, path)
    if (value === undefined) continue
    const sealed = ctx.sealer.seal(
      locationOf(kind, sealedObject, text),
      text === data ? packData(value) : canonical(value),
    )
    if (text === data) dataSize = sealed.length
    sealedObject = writeAt(sealedObject, path, sealed)
  }
  const metadata = sealedObject['metadata'] as JsonObject
  // uid is the last key of canonical metadata, so the revision goes right before it.
  const others = canonical(metadata, afterRevision).slice(0, -1)
  const head = `{"apiVersion":${JSON.stringify(sealedObject['apiVersion'])},"kind":${JSON.stringify(sealedObject['kind'])},"metadata":${others},"resourceVersion":"`
  const tail = canonical(sealedObject, beforeRest)
  const text = Buffer.from(
    `${head}","uid":${JSON.stringify(metadata['uid'])}}${tail === '{}' ? '}' : `,${tail.slice(1)}`}`,
  )
  const value = {
    text,
    gap: Buffer.byteLength(head),
    index: { labels: object.metadata.labels, terms: indexTerms(kind, object) },
  }
  return { value, size: text.length - dataSize }
}

function locationOf(kind: Kind, object: JsonObject, path: string): FieldLocation {
  const { namespace = '', name = '', uid = '' } = object.metadata as { namespace?: string; name?: string; uid?: string }
  return { kind: kind.id, namespace, name, uid, path }
}

/** A stored object as a caller with permission to get it sees it. */
export function present(ctx: Context, kind: Kind, entry: Entry): Document {
  return ctx.isInternal || isPlain(kind)
    ? storedDocument(entry.text, entry.key)
    : documentOf(visible(ctx, kind, load(ctx, kind, entry)))
}

/** A newly stored object as its writer sees it. */
export function presentStored(
  ctx: Context,
  kind: Kind,
  stored: { object: Resource; value: Value; revision: number },
  shown?: Shown,
): Document {
  const { value, revision, object } = stored
  if (isPlain(kind) && !shown) {
    const { text, gap } = value
    const { namespace = '', name = '', uid } = object.metadata
    const json = Buffer.concat([text.subarray(0, gap), Buffer.from(String(revision)), text.subarray(gap)])
    return documentFrom(json, { namespace, name }, uid)
  }
  const whole = visible(ctx, kind, { ...object, metadata: { ...object.metadata, resourceVersion: String(revision) } })
  return documentOf(shown ? shown(whole) : whole)
}

/** Removes hidden fields and adds the last activity. */
export function visible(ctx: Context, kind: Kind, object: Resource): Resource {
  if (ctx.isInternal) return object
  let shown = (kind.join ? kind.join(object, ctx.lastActivity) : object) as unknown as JsonObject
  for (const text of kind.hidden) shown = writeAt(shown, fieldPath(text), undefined)
  if (isObject(shown.status) && Object.keys(shown.status).length === 0) shown = writeAt(shown, ['status'], undefined)
  return shown as unknown as Resource
}

/** Keeps the fields that the caller could not see, unless the request sets them or removes their parent (D5). */
export function carryOver(kind: Kind, next: Resource, old: Resource): Resource {
  let object = next as unknown as JsonObject
  for (const text of kind.hidden) {
    const path = fieldPath(text)
    const kept = readAt(old as unknown as JsonObject, path)
    if (kept !== undefined && readAt(object, path) === undefined) object = writeAt(object, path, kept)
  }
  return object as unknown as Resource
}

/** kubectl copies whole manifests into an annotation. Replaces secret values in it and keeps their keys (D28). */
export function redactLastApplied(kind: Kind, object: Resource): Resource {
  const secret = [...kind.writeOnly, ...kind.hidden]
  const text = secret.length ? readAt(object as unknown as JsonObject, lastApplied) : undefined
  if (typeof text !== 'string') return object
  const next = removePaths(text, secret.map(fieldPath))
  return writeAt(object as unknown as JsonObject, lastApplied, next) as unknown as Resource
}

/** An annotation with another structure may contain secrets anywhere, so it is replaced as a whole. */
function removePaths(text: string, paths: readonly FieldPath[]): string {
  try {
    let manifest: JsonObject = JSON.parse(text)
    if (!isObject(manifest)) return redacted
    for (const path of paths) {
      const depth = path.findIndex((_, index) => !isObject(readAt(manifest, path.slice(0, index + 1)) ?? {}))
      if (depth !== -1) manifest = writeAt(manifest, path.slice(0, depth + 1), redacted)
      else if (readAt(manifest, path) !== undefined) manifest = writeAt(manifest, path, redacted)
    }
    return `${JSON.stringify(manifest)}\n`
  } catch {
    return redacted
  }
}
