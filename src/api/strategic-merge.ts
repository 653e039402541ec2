// Strategic merge patch, for the kinds kubectl treats as built in (D5): their lists are replaced whole, but for two in metadata.

import { applyMergePatch } from './merge-patch.ts'
import { emptyMap, isObject, type Json, type JsonObject } from './object.ts'

/** Lists that are merged item by item: by a key, or as a set of words. */
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
  const plain = withoutDirectives(patch)
  if (directive === 'replace') return applyMergePatch(emptyMap(), plain)
  const target = isObject(document) ? document : emptyMap()
  const out = emptyMap()
  for (const key of Object.keys(target)) out[key] = target[key] as Json
  const retained = patch['$retainKeys']
  if (Array.isArray(retained)) {
    const kept = new Set<Json>(retained)
    for (const key of Object.keys(out)) if (!kept.has(key)) delete out[key]
  }
  for (const [key, removed] of Object.entries(patch))
    if (key.startsWith('$deleteFromPrimitiveList/') && Array.isArray(removed))
      removeWords(out, key.slice(key.indexOf('/') + 1), removed)
  for (const key of Object.keys(plain)) {
    const value = plain[key] as Json
    const at = path ? `${path}.${key}` : key
    if (value === null) delete out[key]
    else if (Array.isArray(value) && Object.hasOwn(mergedLists, at))
      out[key] = mergeList(out[key] ?? [], value, mergedLists[at] ?? null)
    else out[key] = merge(out[key] ?? null, value, at)
  }
  return out
}

const isDirective = (key: string) =>
  key === '$patch' ||
  key === '$retainKeys' ||
  key.startsWith('$deleteFromPrimitiveList/') ||
  key.startsWith('$setElementOrder/')

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

/** By an index: searching the list for every item would take quadratic time, before its limit is checked. */
function mergeByKey(current: readonly Json[], items: readonly Json[], key: string): Json {
  const list: (Json | undefined)[] = [...current]
  const places = new Map<Json | undefined, number>()
  for (const [place, one] of list.entries()) if (isObject(one) && !places.has(one[key])) places.set(one[key], place)
  for (const item of items) {
    const id = isObject(item) ? item[key] : undefined
    const place = isObject(item) ? places.get(id) : undefined
    if (isObject(item) && item['$patch'] === 'delete') {
      if (place !== undefined) list[place] = undefined
      places.delete(id)
    } else if (place === undefined) {
      if (isObject(item)) places.set(id, list.length)
      list.push(merge(emptyMap(), item, ''))
    } else list[place] = merge(list[place] as Json, item, '')
  }
  return list.filter(one => one !== undefined)
}
