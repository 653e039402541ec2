// The part of a stored object that says who may see it. Filtered lists and watches judge by it: what they do not show is not decrypted.

import { fieldPath, writeAt } from '../api/field-path.ts'
import type { Kind } from '../api/kind.ts'
import type { JsonObject, Resource } from '../api/object.ts'
import { parseOnce, parseStored } from '../api/parse-cache.ts'
import type { Entry } from '../storage/store.ts'

/** By the stored bytes, which never change: an object is parsed once, however many lists and watches pass over it. */
const known = new WeakMap<Uint8Array, Resource>()

/** Without sealed fields. Of a large object nothing else is kept in memory. */
export function openPart(kind: Kind, { text }: Entry): Resource {
  if (kind.sealed.length === 0) return parseStored(text)
  const there = known.get(text)
  if (there) return there
  let object = parseOnce(text) as unknown as JsonObject
  for (const path of [...kind.sealed, 'metadata.managedFields']) object = writeAt(object, fieldPath(path), undefined)
  const part = object as unknown as Resource
  known.set(text, part)
  return part
}
