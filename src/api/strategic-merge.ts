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
  if (Array.isArray(retained)) for (const key of Object.keys(out)) if (!retained.includes(key)) delete out[key]
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
  if (Array.isArray(words)) out[key] = words.filter(word => !removed.includes(word))
}

function mergeList(current: Json, items: readonly Json[], key: string | null): Json {
  const list = Array.isArray(current) ? [...(current as readonly Json[])] : []
  for (const item of items) {
    if (key === null) {
      if (!list.includes(item)) list.push(item)
      continue
    }
    const index = list.findIndex(one => isObject(one) && isObject(item) && one[key] === item[key])
    if (isObject(item) && item['$patch'] === 'delete') {
      if (index !== -1) list.splice(index, 1)
    } else if (index === -1) list.push(merge(emptyMap(), item, ''))
    else list[index] = merge(list[index] as Json, item, '')
  }
  return list
}
