// Copies, reads, writes and removes values of a JSON object by path.

import { type Draft, emptyMap, type Json, type JsonObject } from '../../api/object.ts'
import type { ConcretePath } from './path.ts'

/** The copy has no prototype, so that a key such as `__proto__` is an ordinary key. */
export function cloneJson(object: JsonObject): Draft {
  const next = emptyMap()
  for (const [key, value] of Object.entries(object)) next[key] = cloneValue(value)
  return next
}

export function cloneValue(value: Json): Json {
  if (typeof value !== 'object' || value === null) return value
  return Array.isArray(value) ? value.map(cloneValue) : cloneJson(value as JsonObject)
}

export function readAt(object: Json | undefined, path: ConcretePath): Json | undefined {
  let value = object
  for (const step of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined
    value = (value as JsonObject)[step]
  }
  return value
}

/** The parent must exist, and the path must not be empty. */
export function writeAt(object: Draft, path: ConcretePath, value: Json): void {
  const parent = readAt(object, path.slice(0, -1)) as Draft
  parent[path.at(-1) as string] = value
}

/** Removes in reverse order, so that indexes of earlier elements stay valid. */
export function removeAll(object: Draft, paths: readonly ConcretePath[]): void {
  for (const path of paths.toReversed()) {
    const parent = readAt(object, path.slice(0, -1))
    const last = path.at(-1)
    if (Array.isArray(parent)) parent.splice(last as number, 1)
    else delete (parent as Draft)[last as string]
  }
}

/** Deep equality; ignores the order of keys. */
export function isSame(one: Json | undefined, other: Json | undefined): boolean {
  if (one === other) return true
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false
  if (Array.isArray(one) !== Array.isArray(other)) return false
  const keys = Object.keys(one)
  return (
    keys.length === Object.keys(other).length &&
    keys.every(key => Object.hasOwn(other, key) && isSame((one as JsonObject)[key], (other as JsonObject)[key]))
  )
}
