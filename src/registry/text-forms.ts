// Converts write-only maps of text, such as stringData, to the maps of base64 that are stored.

import { type FieldPath, fieldPath, readAt, writeAt } from '../api/field-path.ts'
import type { Kind } from '../api/kind.ts'
import { emptyMap, isObject, type Json, type JsonObject } from '../api/object.ts'

/** Texts replace stored values under the same key. Maps with other values stay, so that validation reports them. */
export function withTextStored(kind: Kind, sent: JsonObject): JsonObject {
  let object = sent
  for (const [from, to] of Object.entries(kind.textForms)) {
    const texts = readAt(object, fieldPath(from))
    if (texts === undefined) continue
    const stored = readAt(object, fieldPath(to)) ?? null
    if (texts !== null && (!isTextMap(texts) || (stored !== null && !isObject(stored)))) continue
    object = writeAt(object, fieldPath(from), undefined)
    const entries = Object.entries(texts ?? {}).filter(([, text]) => text !== null)
    if (entries.length === 0) continue
    const merged = Object.assign(emptyMap(), stored)
    for (const [key, text] of entries) merged[key] = Buffer.from(String(text)).toString('base64')
    object = writeAt(object, fieldPath(to), merged)
  }
  return object
}

const isTextMap = (value: Json): value is { readonly [key: string]: string | null } =>
  isObject(value) && Object.values(value).every(text => typeof text === 'string' || text === null)

/** The path under which a field of a write is stored. */
export function storedPath(kind: Kind, path: FieldPath): FieldPath {
  for (const [from, to] of Object.entries(kind.textForms)) {
    const start = fieldPath(from)
    if (start.every((key, index) => path[index] === key)) return [...fieldPath(to), ...path.slice(start.length)]
  }
  return path
}
