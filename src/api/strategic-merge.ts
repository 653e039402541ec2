// Applies strategic merge patch for the kinds that kubectl treats as built in (D5).
// Replaces lists, except for two in metadata.

import { applyMergePatch } from './merge-patch.ts'
import { emptyMap, isObject, type Json, type JsonObject } from './object.ts'

/** Lists that are merged by item: by a key, or as a set of strings. */
const mergedLists: { readonly [path: string]: string | null } = {
  'metadata.ownerReferences': 'uid',
  'metadata.finalizers': null,
}

export function applyStrategicMerge(document: Json, patch: Json): Json {
  return merge(document, patch, '')
}

function merge(document: Json, patch: Json, path: string): Json {
  if (!isObject(patch)) return patch
  const directive = patch['$patch']
  if (directive === 'delete') return emptyMap()
  if (directive === 'replace') return applyMergePatch(emptyMap(), withoutDirectives(patch))
  const out = emptyMap()
  if (isObject(document)) for (const key of Object.keys(document)) out[key] = document[key] as Json
  const keys = Object.keys(patch)
  follow(out, patch, keys)
  for (const key of keys) {
    const value = patch[key] as Json
    if (isDirective(key)) continue
    if (value === null) delete out[key]
    else out[key] = typeof value === 'object' ? mergeAt(out[key], value, path ? `${path}.${key}` : key) : value
  }
  return out
}

function mergeAt(current: Json | undefined, value: Json, path: string): Json {
  return Array.isArray(value) && Object.hasOwn(mergedLists, path)
    ? mergeList(current ?? [], value, mergedLists[path] ?? null)
    : merge(current ?? null, value, path)
}

/** Directives that remove something come first. */
function follow(out: { [key: string]: Json }, patch: JsonObject, keys: readonly string[]): void {
  const retained = patch['$retainKeys']
  if (Array.isArray(retained)) {
    const kept = new Set<Json>(retained)
    for (const key of Object.keys(out)) if (!kept.has(key)) delete out[key]
  }
  for (const key of keys)
    if (isDirective(key) && key.startsWith('$deleteFromPrimitiveList/') && Array.isArray(patch[key]))
      removeWords(out, key.slice(key.indexOf('/') + 1), patch[key])
}

const isDirective = (key: string) =>
  key.startsWith('$') &&
  (key === '$patch' ||
    key === '$retainKeys' ||
    key.startsWith('$deleteFromPrimitiveList/') ||
    key.startsWith('$setElementOrder/'))

function withoutDirectives(patch: JsonObject): JsonObject {
  const out = emptyMap()
  for (const key of Object.keys(patch)) if (!isDirective(key)) out[key] = patch[key] as Json
  return out
}

function removeWords(out: { [key: string]: Json }, key: string, removed: readonly Json[]): void {
  const words = out[key]
  const gone = new Set(removed)
  if (Array.isArray(words)) out[key] = words.filter(word => !gone.has(word))
}

function mergeList(current: Json, items: readonly Json[], key: string | null): Json {
  const list = Array.isArray(current) ? (current as readonly Json[]) : []
  return key === null ? [...new Set([...list, ...items])] : mergeByKey(list, items, key)
}

/** Uses an index, because searching the list for every item would take quadratic time before its limit is checked. */
function mergeByKey(current: readonly Json[], items: readonly Json[], key: string): Json {
  const list: (Json | undefined)[] = [...current]
  const indexes = new Map<Json | undefined, number>()
  for (const [index, one] of list.entries()) if (isObject(one) && !indexes.has(one[key])) indexes.set(one[key], index)
  for (const item of items) {
    const id = isObject(item) ? item[key] : undefined
    const index = isObject(item) ? indexes.get(id) : undefined
    if (isObject(item) && item['$patch'] === 'delete') {
      if (index !== undefined) list[index] = undefined
      indexes.delete(id)
    } else if (index === undefined) {
      if (isObject(item)) indexes.set(id, list.length)
      list.push(merge(emptyMap(), item, ''))
    } else list[index] = merge(list[index] as Json, item, '')
  }
  return list.filter(one => one !== undefined)
}
