// Objects of every kind with one large list, map or text: at the limit of its schema, and at that of a body.

import type { Kind } from '../../../src/api/kind.ts'
import { wholeSchema } from '../../../src/api/metadata-schema.ts'
import { isObject, type Json, type JsonObject } from '../../../src/api/object.ts'
import type { Schema } from '../../../src/api/schema.ts'

/** `make(count)`: the object with this many items, members or characters. */
export type Stretch = {
  readonly path: string
  /** The limit of the schema. */
  readonly most: number
  /** The limit of a body. */
  readonly inBody: number
  make(count: number): JsonObject
}

/** A text has no limit of its own, but a stored object has one (D72). */
const longestText = 1_000_000
/** Below the limits of a body (3 MiB, 50,000 values, 25,000 keys), because the rest of the object counts, too. */
const bodyCharacters = 3_000_000
const bodyValues = 45_000
const bodyKeys = 24_000
/** The keys of small maps do not count. */
const smallMap = 10
const skipped = new Set(['apiVersion', 'kind', 'metadata.name', 'metadata.namespace', 'status'])

export function stretches(kind: Kind): Stretch[] {
  const base = kind.sample
  return [...places(wholeSchema(kind), [])].map(({ path, most, value }) => ({
    path: path.join('.'),
    most,
    inBody: fitting(value),
    make: count => put(base, path, value(count)) as JsonObject,
  }))
}

type Place = { readonly path: readonly string[]; readonly most: number; readonly value: (count: number) => Json }

function fitting(value: (count: number) => Json): number {
  const sample = value(100)
  if (typeof sample === 'string') return bodyCharacters
  const { values, keys } = countIn(sample)
  const characters = JSON.stringify(sample).length
  return Math.floor(100 * Math.min(bodyValues / values, bodyKeys / keys, (bodyCharacters / characters) * 0.8))
}

function countIn(value: Json): { readonly values: number; readonly keys: number } {
  if (typeof value !== 'object' || value === null) return { values: 1, keys: 0 }
  const inside = Object.values(value).map(one => countIn(one as Json))
  const sum = (numbers: readonly number[]) => numbers.reduce((total, one) => total + one, 0)
  return {
    values: 1 + sum(inside.map(one => one.values)),
    keys: (Array.isArray(value) || inside.length <= smallMap ? 0 : inside.length) + sum(inside.map(one => one.keys)),
  }
}

function* places(schema: Schema, path: readonly string[]): Generator<Place> {
  if (skipped.has(path.join('.')) || schema['x-internal']) return
  if (schema.type === 'string' && !schema.enum && !schema.format)
    yield { path, most: schema.maxLength ?? longestText, value: count => 'x'.repeat(count) }
  if (schema.items) {
    const items = schema.items
    yield {
      path,
      most: schema.maxItems ?? 10_000,
      value: count => Array.from({ length: count }, (_, at) => item(items, at)),
    }
    for (const place of places(items, []))
      if (place.path.length) yield { ...place, path: [...path, '0', ...place.path] }
  }
  if (schema.type === 'object' && typeof schema.additionalProperties === 'object') {
    const values = schema.additionalProperties
    yield {
      path,
      most: schema.maxProperties ?? 10_000,
      value: count => Object.fromEntries(Array.from({ length: count }, (_, at) => [`key-${at}`, item(values, at)])),
    }
  }
  for (const [name, property] of Object.entries(schema.properties ?? {})) yield* places(property, [...path, name])
}

/** The smallest value of a schema, different for every number. */
function item(schema: Schema, at: number): Json {
  if (schema.enum) return schema.enum[at % schema.enum.length] as string
  if (schema.format === 'byte') return 'aGk='
  if (schema.format === 'date-time') return '2026-01-02T03:04:05Z'
  if (schema.type === 'integer') return at
  if (schema.type === 'boolean') return true
  if (schema.type === 'array') return [item(schema.items ?? {}, at)]
  if (schema.type !== 'object') return `word-${at}`
  const needed = schema.required ?? Object.keys(schema.properties ?? {}).slice(0, 1)
  return Object.fromEntries(needed.map(name => [name, item(schema.properties?.[name] ?? {}, at)]))
}

function put(object: Json, [first, ...rest]: readonly string[], value: Json): Json {
  if (first === undefined) return value
  if (first === '0') return [put({}, rest, value)]
  const there = isObject(object) ? object : {}
  return { ...there, [first]: put(there[first] ?? {}, rest, value) }
}
