// JSON Merge Patch (RFC 7396): `registry/patch.ts` applies these to objects it must not change.
import { type Draft, emptyMap, isObject, type Json } from './object.ts'

/** A new document; neither argument changes, and untouched parts are shared with them. `null` removes a member. */
export function applyMergePatch(document: Json, patch: Json): Json {
  // The recursion is bounded by the patch's depth, which its reader has limited (D7).
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
