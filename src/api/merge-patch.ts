// Applies JSON Merge Patch (RFC 7396) without changing the document.
import { type Draft, emptyMap, isObject, type Json } from './object.ts'

/** Returns a new document that shares unchanged parts with the arguments. `null` removes a member. */
export function applyMergePatch(document: Json, patch: Json): Json {
  // The reader has limited the depth of the patch, and so of this recursion (D7).
  if (!isObject(patch)) return patch
  const result: Draft = emptyMap()
  if (isObject(document)) for (const key of Object.keys(document)) result[key] = document[key] as Json
  for (const key of Object.keys(patch)) {
    const change = patch[key] as Json
    if (change === null) delete result[key]
    else result[key] = applyMergePatch(result[key] ?? null, change)
  }
  return result
}
