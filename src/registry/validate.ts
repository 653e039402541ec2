// Validates an object against its schema: prunes unknown fields, sets defaults and collects all errors.

import {
  duplicateValue,
  type FieldError,
  fieldForbidden,
  invalidSecret,
  invalidValue,
  isEnough,
  maxErrors,
  notSupported,
  required,
  tooLong,
  tooMany,
  wrongType,
} from '../api/errors.ts'
import { emptyMap, isObject, type Json, keysOf } from '../api/object.ts'
import { maxNameLength, type Schema } from '../api/schema.ts'

export type Findings = {
  readonly errors: FieldError[]
  /** Values of the wrong JSON type. Each is also in `errors`. */
  readonly wrongTypes: { readonly field: string; readonly expected: string; readonly actual: string }[]
  readonly unknown: string[]
  readonly deprecated: string[]
}
export const noFindings = (): Findings => ({ errors: [], wrongTypes: [], unknown: [], deprecated: [] })

/** Returns the value without unknown fields and nulls, with defaults. After too many errors, returns it unchanged. */
export function conform(schema: Schema, value: Json, path: string, found: Findings): Json {
  if (isEnough(found.errors)) return value
  if (schema.deprecated && found.deprecated.length < maxErrors) found.deprecated.push(path)
  if (schema['x-kubernetes-preserve-unknown-fields']) return value
  switch (schema.type) {
    case 'object':
      if (!isObject(value)) return mismatch(schema, value, path, found)
      return schema.additionalProperties && typeof schema.additionalProperties === 'object'
        ? conformMap(schema, value, path, found)
        : conformStruct(schema, value, path, found)
    case 'array':
      return Array.isArray(value) ? conformList(schema, value, path, found) : mismatch(schema, value, path, found)
    default:
      return conformScalar(schema, value as null | boolean | number | string, path, found)
  }
}

function conformStruct(schema: Schema, value: { readonly [key: string]: Json }, path: string, found: Findings): Json {
  const properties = schema.properties ?? {}
  const out = emptyMap()
  for (const key of keysOf(value)) {
    const property = Object.hasOwn(properties, key) ? properties[key] : undefined
    if (!property || property['x-internal']) {
      if (schema['x-closed']) found.errors.push(fieldForbidden(join(path, key), `unknown field "${join(path, key)}"`))
      else noteUnknown(found, path, key)
      continue
    }
    const item = value[key] as Json
    if (item !== null) out[key] = conform(property, item, join(path, key), found)
    // Elsewhere null means absent. Here an absent field may be an intended restriction (D25).
    else if (schema['x-closed']) mismatch(property, item, join(path, key), found)
  }
  for (const [key, missing] of defaultsOf(schema)) if (out[key] === undefined) out[key] = missing
  for (const key of schema.required ?? []) if (out[key] === undefined) found.errors.push(required(join(path, key), ''))
  return out
}

const defaults = new WeakMap<Schema, readonly (readonly [string, Json])[]>()

/** Caches the few properties that have a default. */
function defaultsOf(schema: Schema): readonly (readonly [string, Json])[] {
  const cached = defaults.get(schema)
  if (cached) return cached
  const all = Object.entries(schema.properties ?? {})
  const found = all.flatMap(([key, { default: value }]) => (value === undefined ? [] : [[key, value as Json] as const]))
  defaults.set(schema, found)
  return found
}

export function noteUnknown({ unknown }: Pick<Findings, 'unknown'>, path: string, key: string): void {
  if (unknown.length < maxErrors) unknown.push(join(path, key))
}

function conformMap(
  { additionalProperties, maxProperties: max = Number.POSITIVE_INFINITY }: Schema,
  value: { readonly [key: string]: Json },
  path: string,
  found: Findings,
): Json {
  const values = additionalProperties as Schema
  const keys = keysOf(value)
  if (keys.length > max) return exceeding(value, path, keys.length, max, found)
  if (keys.some(key => key.length > maxNameLength)) found.errors.push(tooLong(`${path} (a key)`, maxNameLength))
  if (keys.length && keys.every(key => fits(values, value[key] as Json))) return value
  const out = emptyMap()
  for (const key of keys) {
    if (isEnough(found.errors)) return value
    const item = value[key] as Json
    if (item !== null) out[key] = conform(values, item, join(path, key), found)
  }
  return keys.some(key => out[key] !== undefined) ? out : nothing
}

/** Does not check the items, because the limit exists to avoid that cost. */
function exceeding(value: Json, path: string, actual: number, max: number, found: Findings): Json {
  found.errors.push(tooMany(path, actual, max))
  return value
}

/** An empty map, compared by identity. */
export const nothing: Json = Object.freeze(emptyMap())

/** A fast path for plain values, which avoids building paths for a million of them. */
const fits = (schema: Schema, value: Json) =>
  typeof value === schema.type &&
  (schema.type === 'string' || schema.type === 'boolean') &&
  !schema.enum &&
  !schema.deprecated &&
  (schema.maxLength === undefined || (value as string).length <= schema.maxLength) &&
  (!schema.format || (schema.format === 'byte' && base64.test(value as string)))

function conformList(schema: Schema, value: readonly Json[], path: string, found: Findings): Json {
  const { items = {}, maxItems: max = Number.POSITIVE_INFINITY } = schema
  if (value.length > max) return exceeding(value, path, value.length, max, found)
  const out = value.every(item => fits(items, item)) ? value : conformItems(items, value, path, found)
  const type = schema['x-kubernetes-list-type']
  if (type === 'set' || type === 'map') checkUnique(schema, out, path, found)
  return out
}

function conformItems(schema: Schema, items: readonly Json[], path: string, found: Findings): readonly Json[] {
  const out: Json[] = []
  for (const [index, item] of items.entries()) {
    if (isEnough(found.errors)) return items
    out.push(conform(schema, item, `${path}[${index}]`, found))
  }
  return out
}

function checkUnique(schema: Schema, items: readonly Json[], path: string, found: Findings): void {
  const keys = schema['x-kubernetes-list-map-keys'] ?? []
  const seen = new Set<Json>()
  for (const [index, item] of items.entries()) {
    const identity = identityOf(keys, item)
    if (seen.has(identity)) {
      const named = isObject(item) ? Object.fromEntries(keys.map(key => [key, item[key] ?? null])) : item
      found.errors.push(duplicateValue(`${path}[${index}]`, named))
      if (isEnough(found.errors)) return
    }
    seen.add(identity)
  }
}

/** The identity of an item in a set or map list, comparable with ===. */
function identityOf(keys: readonly string[], item: Json): Json {
  if (typeof item !== 'object' || item === null) return item
  const [key] = keys
  const values = isObject(item) && key !== undefined ? keys.map(one => item[one] ?? null) : item
  const [only = null] = Array.isArray(values) && keys.length === 1 ? values : []
  return typeof only === 'string' ? only : JSON.stringify(values)
}

const dateTime = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/
const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

function conformScalar(schema: Schema, value: null | boolean | number | string, path: string, found: Findings): Json {
  const fits = schema.type === 'integer' ? Number.isSafeInteger(value) : typeof value === schema.type
  if (!fits) return mismatch(schema, value, path, found)
  if (schema.maxLength !== undefined && (value as string).length > schema.maxLength)
    found.errors.push(tooLong(path, schema.maxLength))
  if (schema.enum && !schema.enum.includes(value as string)) found.errors.push(notSupported(path, value, schema.enum))
  if (schema.minimum !== undefined && (value as number) < schema.minimum)
    found.errors.push(invalidValue(path, value, `${path} in body should be greater than or equal to ${schema.minimum}`))
  if (schema.format === 'byte' && !base64.test(value as string))
    // Do not repeat the value: it may be a secret that is not encoded.
    found.errors.push(
      invalidSecret(path, `${path} in body must be of type byte: base64 with padding (RFC 4648 section 4)`),
    )
  if (schema.format === 'date-time' && !(dateTime.test(value as string) && !Number.isNaN(Date.parse(value as string))))
    found.errors.push(
      invalidValue(
        path,
        value,
        `${path} in body must be of type date-time: an RFC 3339 time such as 2026-01-02T15:04:05Z`,
      ),
    )
  return value
}

const yamlBooleans = new Map([
  ...['y', 'yes', 'on'].map(word => [word, true] as const),
  ...['n', 'no', 'off'].map(word => [word, false] as const),
])

function booleanHint(value: string): string {
  const meant = value.length <= 3 ? yamlBooleans.get(value.toLowerCase()) : undefined
  return meant === undefined ? '' : ` (did you mean ${meant}?)`
}

function mismatch(schema: Schema, value: Json, path: string, found: Findings): Json {
  const hint = schema.type === 'boolean' && typeof value === 'string' ? booleanHint(value) : ''
  const [expected, actual] = [schema.type ?? 'object', typeName(value)]
  found.wrongTypes.push({ field: path, expected, actual })
  found.errors.push(wrongType(path, expected, actual, hint))
  return value
}

export function typeName(value: Json): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return typeof value === 'number' && Number.isInteger(value) ? 'integer' : typeof value
}

const join = (path: string, key: string) => (path ? `${path}.${key}` : key)
