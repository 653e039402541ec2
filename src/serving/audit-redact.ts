// Replaces secrets in audit events with keyed hashes. A known value can then be found, and an unknown one cannot be guessed.

import { createHmac, randomBytes } from 'node:crypto'
import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { Kind } from '../api/kind.ts'
import { wholeSchema } from '../api/metadata-schema.ts'
import { emptyMap, isObject, type Json, type JsonObject } from '../api/object.ts'
import type { Schema } from '../api/schema.ts'

export type Hash = (value: string) => string

export function hashWith(salt: Uint8Array): Hash {
  return value => `hmac-sha256:${createHmac('sha256', salt).update(value).digest('hex')}`
}

/** The salt in a file: 32 bytes in hex, readable only by its owner. Created if missing and `mayMake` is set. */
export function saltIn(file: string, mayMake: boolean): Buffer {
  if (mayMake) makeSalt(file)
  const salt = Buffer.from(readFileSync(file, 'utf8').trim(), 'hex')
  if (salt.length < 32) throw new Error(`${file} is not a valid salt: expected 64 hexadecimal characters`)
  return salt
}

/** Creates the file atomically. If another process was faster, its salt stays. */
function makeSalt(file: string): void {
  const temporary = `${file}.${randomBytes(4).toString('hex')}.tmp`
  try {
    readFileSync(file)
    return
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  writeFileSync(temporary, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600, flush: true })
  try {
    linkSync(temporary, file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    rmSync(temporary, { force: true })
  }
}

/** Always secret, for every kind: keys and tokens in requests and responses, and the manifest that kubectl copies into an annotation. */
const always = [
  'spec.key',
  'spec.token',
  'status.token',
  'metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]',
]

type Path = readonly string[]

const fieldPath = (text: string): Path =>
  [...text.matchAll(/\["([^"]+)"\]|([^.[\]]+)/g)].map(match => (match[1] ?? match[2]) as string)

/**
 * The parts of a value that the log may show. It hashes everything else: an unknown field, or a value of the wrong type,
 * is a mistake and may be the secret itself.
 */
export type Protection = {
  /** The JSON type that the log may show. undefined: none. */
  readonly type: 'object' | 'array' | 'string' | 'integer' | 'boolean' | undefined
  /** The only texts that the log may show. undefined: all. */
  readonly texts?: ReadonlySet<string> | undefined
  readonly fields: ReadonlyMap<string, Protection>
  /** For the items of a list, and for values of a map that `fields` does not name. */
  readonly each: Protection | undefined
}

const noFields: ReadonlyMap<string, Protection> = new Map()
const secret: Protection = { type: undefined, fields: noFields, each: undefined }
/** Objects with arbitrary field names and no values, such as fieldsV1. */
const fieldTree: Protection = {
  type: 'object',
  fields: noFields,
  get each() {
    return fieldTree
  },
}

const ofKinds = new WeakMap<Kind, Protection>()

export function protectionOf(kind: Kind): Protection {
  const known = ofKinds.get(kind)
  if (known) return known
  const secrets = [...kind.hidden, ...kind.writeOnly, ...kind.sealed, ...Object.keys(kind.textForms)]
  const made = protectionOfSchema(wholeSchema(kind), secrets)
  ofKinds.set(kind, made)
  return made
}

/** `secrets`: dotted paths of secret fields. List items have no segment in a path. */
export const protectionOfSchema = (schema: Schema, secrets: readonly string[] = []): Protection =>
  protect([...always, ...secrets].map(fieldPath), schema)

function protect(paths: readonly Path[], schema: Schema | undefined): Protection {
  if (!schema || schema['x-internal'] || paths.some(path => path.length === 0)) return secret
  if (schema['x-kubernetes-preserve-unknown-fields']) return fieldTree
  const type = schema.type as Protection['type']
  if (schema.items) return { type, fields: noFields, each: protect(paths, schema.items) }
  const { properties = {}, additionalProperties } = schema
  const values = typeof additionalProperties === 'object' ? additionalProperties : undefined
  const names = new Set([...paths.flatMap(path => path[0] ?? []), ...Object.keys(properties)])
  const below = (name: string) => paths.filter(path => path[0] === name).map(path => path.slice(1))
  return {
    type,
    texts: schema.enum && new Set(schema.enum),
    fields: new Map([...names].map(name => [name, protect(below(name), properties[name] ?? values)])),
    each: values && protect([], values),
  }
}

/** A copy in which every value that is or may be secret is replaced by its hash. */
export function redact(value: Json, protection: Protection | undefined, hash: Hash): Json {
  if (value === null) return null
  if (!protection || protection.type !== typeOf(value)) return hashed(value, hash)
  const { fields, each, texts } = protection
  if (Array.isArray(value)) return value.map((one: Json) => redact(one, each, hash))
  if (isObject(value)) return mapped(value, (one, key) => redact(one, fields.get(key) ?? each, hash), hash)
  if (typeof value !== 'string') return value
  return !texts || texts.has(value) ? scrub(value, hash) : hash(value)
}

function typeOf(value: Json): Protection['type'] {
  if (Array.isArray(value)) return 'array'
  if (isObject(value)) return 'object'
  return typeof value === 'number' ? 'integer' : (typeof value as 'string' | 'boolean')
}

/** Replaces every value with its hash. Field names stay. */
function hashed(value: Json, hash: Hash): Json {
  if (value === null) return null
  if (Array.isArray(value)) return value.map((one: Json) => hashed(one, hash))
  return isObject(value) ? mapped(value, one => hashed(one, hash), hash) : hash(String(value))
}

function mapped(object: JsonObject, show: (value: Json, key: string) => Json, hash: Hash): JsonObject {
  const copy = emptyMap()
  for (const key of Object.keys(object)) copy[scrub(key, hash)] = show(object[key] as Json, key)
  return copy
}

/** Replaces a body of an unexpected shape with one hash. This hides its field names as well. */
export function hashWhole(value: Json, hash: Hash): Json {
  return value === null ? null : hash(typeof value === 'string' ? value : JSON.stringify(value))
}

const operations = new Set(['add', 'remove', 'replace', 'move', 'copy', 'test'])

/** The operations of a JSON Patch. The pointer of an operation determines the protection of its value. */
export function redactPatch(patch: readonly Json[], protection: Protection, hash: Hash): Json {
  return patch.map(operation => {
    if (!isObject(operation)) return hashed(operation, hash)
    return mapped(
      operation,
      (one, key) => {
        if (key === 'op') return operations.has(one as string) ? one : hashed(one, hash)
        if (key === 'path' || key === 'from') return isPointer(one) ? scrub(one, hash) : hashed(one, hash)
        return redact(one, key === 'value' ? protectionAt(operation.path, protection) : undefined, hash)
      },
      hash,
    )
  })
}

const isPointer = (value: Json | undefined): value is string =>
  typeof value === 'string' && (value === '' || value.startsWith('/'))

function protectionAt(pointer: Json | undefined, protection: Protection): Protection | undefined {
  if (!isPointer(pointer)) return undefined
  let at: Protection | undefined = protection
  for (const part of pointer.split('/').slice(1)) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~')
    at = at?.type === 'array' ? at.each : (at?.fields.get(key) ?? at?.each)
  }
  return at
}

// Access keys have a known prefix and tokens a known shape. Neither pattern reads a character more than twice.
const strays = /plat_[0-9A-Za-z]{40,}|(?<![\w-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}/g

/** Removes keys and tokens from text that should not contain any. */
export function scrub(text: string, hash: Hash): string {
  return text.includes('plat_') || text.includes('eyJ') ? text.replace(strays, hash) : text
}
