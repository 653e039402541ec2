// Reads the unencrypted fields of a stored object, which decide who may see it.
// Filtered lists and watches need no decryption for the objects that they leave out.

import { fieldPath, writeAt } from '../api/field-path.ts'
import type { Kind } from '../api/kind.ts'
import type { JsonObject, Resource } from '../api/object.ts'
import { parseOnce, parseStored } from '../api/parse-cache.ts'
import type { Entry } from '../storage/store.ts'

/** Keyed by the stored bytes, which never change: the server parses an object once for all lists and watches. */
const cache = new WeakMap<Uint8Array, Resource>()

/** Removes encrypted fields, so that the cache of a large object stays small. */
export function openPart(kind: Kind, { text }: Entry): Resource {
  if (kind.sealed.length === 0) return parseStored(text)
  const cached = cache.get(text)
  if (cached) return cached
  let object = parseOnce(text) as unknown as JsonObject
  for (const path of [...kind.sealed, 'metadata.managedFields']) object = writeAt(object, fieldPath(path), undefined)
  const part = object as unknown as Resource
  cache.set(text, part)
  return part
}
