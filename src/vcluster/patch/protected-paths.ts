// Fields that patches cannot change: the identity of the object and the syncer's metadata.

import { type Draft, emptyMap, isObject, type Json, type JsonObject } from '../../api/object.ts'
import { METADATA_PREFIX } from '../sync/names.ts'
import { readAt } from './edit.ts'
import type { ConcretePath, Path } from './path.ts'

const identity = ['name', 'namespace', 'uid', 'resourceVersion']
const metadataMaps = ['annotations', 'labels'] as const

export const isMetadataMap = (key: string | number | undefined): key is (typeof metadataMaps)[number] =>
  metadataMaps.some(one => one === key)

export function isProtected(path: ConcretePath): boolean {
  const [first, second, third] = path
  if (path.length === 1) return first === 'apiVersion' || first === 'kind'
  if (first !== 'metadata') return false
  if (path.length >= 2 && identity.includes(second as string)) return true
  return isMetadataMap(second) && typeof third === 'string' && third.startsWith(METADATA_PREFIX)
}

/** Whether the value at the path may contain protected fields, which must then be restored. */
export function mayHoldProtected(path: Path): boolean {
  const [first] = path
  return path.length < 3 && (first === undefined || 'any' in first || first.key === 'metadata')
}

/** Restores protected fields from `before`. Returns why that is impossible. */
export function restoreProtected(next: Draft, before: JsonObject): string | undefined {
  for (const key of ['apiVersion', 'kind']) set(next, key, before[key])
  const old = before['metadata']
  if (!isObject(old)) return undefined
  next['metadata'] ??= emptyMap()
  const metadata = next['metadata']
  if (!isObject(metadata)) return 'metadata must stay a map'
  for (const key of identity) set(metadata, key, old[key])
  for (const key of metadataMaps) {
    const protectedEntries = entriesOf(old[key]).filter(([name]) => name.startsWith(METADATA_PREFIX))
    const now = readAt(metadata, [key])
    if (now !== undefined && !isObject(now)) return `metadata.${key} must stay a map`
    const others = entriesOf(now).filter(([name]) => !name.startsWith(METADATA_PREFIX))
    if (now !== undefined || protectedEntries.length) set(metadata, key, mapOf([...others, ...protectedEntries]))
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

function set(map: Draft | JsonObject, key: string, value: Json | undefined): void {
  if (value === undefined) delete (map as Draft)[key]
  else (map as Draft)[key] = value
}
