// Holds an object against its schema: prunes, defaults and collects every error. The verbs call it on all that comes in.

import {
  duplicateValue,
  type FieldError,
  invalidSecret,
  invalidValue,
  notSupported,
  required,
  wrongType,
} from '../api/errors.ts'
import { emptyMap, isObject, type Json } from '../api/object.ts'
import type { Schema } from '../api/schema.ts'

export type Findings = { readonly errors: FieldError[]; readonly unknown: string[]; readonly deprecated: string[] }
export const noFindings = (): Findings => ({ errors: [], unknown: [], deprecated: [] })

/** The value as the schema knows it: unknown fields and nulls left out, defaults filled in. */
export function conform(schema: Schema, value: Json, path: string, found: Findings): Json {
  if (schema.deprecated) found.deprecated.push(path)
  if (schema['x-kubernetes-preserve-unknown-fields']) return value
  switch (schema.type) {
    case 'object':
      if (!isObject(value)) return mismatch(schema, value, path, found)
      return schema.additionalProperties && typeof schema.additionalProperties === 'object'
        ? conformMap(schema.additionalProperties, value, path, found)
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
  for (const key of Object.keys(value)) {
    const property = Object.hasOwn(properties, key) ? properties[key] : undefined
    const item = value[key] as Json
    if (!property || property['x-internal']) found.unknown.push(join(path, key))
    else if (item !== null) out[key] = conform(property, item, join(path, key), found)
  }
  for (const [key, property] of Object.entries(properties))
    if (property.default !== undefined && out[key] === undefined) out[key] = property.default as Json
  for (const key of schema.required ?? []) if (out[key] === undefined) found.errors.push(required(join(path, key), ''))
  return out
}

function conformMap(values: Schema, value: { readonly [key: string]: Json }, path: string, found: Findings): Json {
  const out = emptyMap()
  for (const key of Object.keys(value)) {
    const item = value[key] as Json
    if (item !== null) out[key] = conform(values, item, join(path, key), found)
  }
  return out
}

function conformList(schema: Schema, value: readonly Json[], path: string, found: Findings): Json {
  const items = schema.items ?? {}
  const out = value.map((item, index) => conform(items, item, `${path}[${index}]`, found))
  const type = schema['x-kubernetes-list-type']
  if (type !== 'set' && type !== 'map') return out
  const keys = schema['x-kubernetes-list-map-keys']
  const seen = new Set<string>()
  for (const [index, item] of out.entries()) {
    const identity = keys && isObject(item) ? Object.fromEntries(keys.map(key => [key, item[key] ?? null])) : item
    const text = JSON.stringify(identity)
    if (seen.has(text)) found.errors.push(duplicateValue(`${path}[${index}]`, identity))
    seen.add(text)
  }
  return out
}

const dateTime = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/
const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

function conformScalar(schema: Schema, value: null | boolean | number | string, path: string, found: Findings): Json {
  const fits = schema.type === 'integer' ? Number.isSafeInteger(value) : typeof value === schema.type
  if (!fits) return mismatch(schema, value, path, found)
  if (schema.enum && !schema.enum.includes(value as string)) found.errors.push(notSupported(path, value, schema.enum))
  if (schema.minimum !== undefined && (value as number) < schema.minimum)
    found.errors.push(invalidValue(path, value, `${path} in body should be greater than or equal to ${schema.minimum}`))
  if (schema.format === 'byte' && !base64.test(value as string))
    // The value may be a secret somebody forgot to encode: it is not repeated.
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

const yamlBooleans: { readonly [word: string]: boolean } = {
  y: true,
  yes: true,
  on: true,
  n: false,
  no: false,
  off: false,
}

function mismatch(schema: Schema, value: Json, path: string, found: Findings): Json {
  const word = typeof value === 'string' ? yamlBooleans[value.toLowerCase()] : undefined
  const hint = schema.type === 'boolean' && word !== undefined ? ` (did you mean ${word}?)` : ''
  found.errors.push(wrongType(path, schema.type ?? 'object', typeName(value), hint))
  return value
}

export function typeName(value: Json): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return typeof value === 'number' && Number.isInteger(value) ? 'integer' : typeof value
}

const join = (path: string, key: string) => (path ? `${path}.${key}` : key)
