// Reads and writes fields by their path, such as `spec.identity.connectorData` or `metadata.annotations["a.b/c"]`.

import { emptyMap, isObject, type Json, type JsonObject } from './object.ts'

export type FieldPath = readonly string[]

const known = new Map<string, FieldPath>()

export function fieldPath(text: string): FieldPath {
  const cached = known.get(text)
  if (cached) return cached
  const path = [...text.matchAll(/\["([^"]+)"\]|([^.[\]]+)/g)].map(match => (match[1] ?? match[2]) as string)
  known.set(text, path)
  return path
}

export function readAt(object: JsonObject, path: FieldPath): Json | undefined {
  let value: Json | undefined = object
  for (const key of path) value = isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined
  return value
}

/** A copy with the value at the path set, or removed if undefined. Unchanged if the parent is missing. */
export function writeAt(object: JsonObject, path: FieldPath, value: Json | undefined): JsonObject {
  const [key, ...rest] = path as [string, ...string[]]
  if (rest.length === 0) {
    if (value === undefined && !Object.hasOwn(object, key)) return object
    const copy = Object.assign(emptyMap(), object) as { [key: string]: Json }
    if (value === undefined) delete copy[key]
    else copy[key] = value
    return copy
  }
  const child = Object.hasOwn(object, key) ? object[key] : undefined
  if (!isObject(child)) return object
  const next = writeAt(child, rest, value)
  return next === child ? object : Object.assign(emptyMap(), object, { [key]: next })
}

/** Whether one path contains the other. */
export function touches(one: FieldPath, other: FieldPath): boolean {
  return one.every((key, index) => index >= other.length || other[index] === key)
}

/** A copy without these fields. */
export function withoutFields(object: JsonObject, paths: readonly FieldPath[]): JsonObject {
  return paths.reduce((rest, path) => writeAt(rest, path, undefined), object)
}
