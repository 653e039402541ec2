// The fields that no patch changes: who the object is, and the syncer's bookkeeping. Called by apply.ts.

import { type Draft, emptyMap, isObject, type Json, type JsonObject } from '../../api/object.ts'
import { MARK } from '../sync/names.ts'
import { readAt } from './edit.ts'
import type { ConcretePath, Path } from './path.ts'

const identity = ['name', 'namespace', 'uid', 'resourceVersion']
const marked = ['annotations', 'labels']

export function isProtected(path: ConcretePath): boolean {
  const [first, second, third] = path
  if (path.length === 1) return first === 'apiVersion' || first === 'kind'
  if (first !== 'metadata') return false
  if (path.length >= 2 && identity.includes(second as string)) return true
  return marked.includes(second as string) && typeof third === 'string' && third.startsWith(MARK)
}

/** Whether a value that holds protected fields can be at the path: then they must be put back. */
export function mayHoldProtected(path: Path): boolean {
  const [first] = path
  return path.length < 3 && (first === undefined || 'any' in first || first.key === 'metadata')
}

/** Puts back what is protected, as it was in `before`. Answers what makes that impossible. */
export function restoreProtected(next: Draft, before: JsonObject): string | undefined {
  for (const key of ['apiVersion', 'kind']) put(next, key, before[key])
  const old = before['metadata']
  if (!isObject(old)) return undefined
  next['metadata'] ??= emptyMap()
  const metadata = next['metadata']
  if (!isObject(metadata)) return 'metadata must stay a map'
  for (const key of identity) put(metadata, key, old[key])
  for (const key of marked) {
    const marks = entriesOf(old[key]).filter(([name]) => name.startsWith(MARK))
    const now = readAt(metadata, [key])
    if (now !== undefined && !isObject(now)) return `metadata.${key} must stay a map`
    const others = entriesOf(now).filter(([name]) => !name.startsWith(MARK))
    if (now !== undefined || marks.length) put(metadata, key, mapOf([...others, ...marks]))
  }
  return undefined
}

function entriesOf(value: Json | undefined): [string, Json][] {
  return isObject(value) ? Object.entries(value) : []
}

function mapOf(entries: readonly [string, Json][]): JsonObject {
  const map = emptyMap()
  for (const [key, value] of entries) map[key] = value
  return map
}

function put(map: Draft | JsonObject, key: string, value: Json | undefined): void {
  if (value === undefined) delete (map as Draft)[key]
  else (map as Draft)[key] = value
}
