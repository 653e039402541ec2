// Lets a patch that sets one of several alternative fields replace the others, such as owner.user by owner.team (D23).

import { fieldPath, readAt, writeAt } from '../api/field-path.ts'
import type { Kind } from '../api/kind.ts'
import { isObject, type Json, type JsonObject } from '../api/object.ts'
import type { PatchBody } from '../api/resources.ts'

/**
 * Removes the fields that the patch replaces. A patch that sets several alternatives keeps them all, and the validation of the
 * kind rejects it.
 */
export function withoutReplaced(kind: Kind, patched: Json, patch: PatchBody): Json {
  if (!isObject(patched)) return patched
  let result: JsonObject = patched
  for (const [parent, fields] of Object.entries(kind.alternatives)) {
    const value = readAt(result, fieldPath(parent))
    if (!isObject(value)) continue
    const present = fields.filter(field => value[field])
    if (present.length < 2) continue
    const set = present.filter(field => isSetBy(patch, parent, field))
    if (set.length !== 1) continue
    const kept = Object.entries(value).filter(([field]) => !present.includes(field) || set.includes(field))
    result = writeAt(result, fieldPath(parent), Object.fromEntries(kept))
  }
  return result
}

function isSetBy({ type, body }: PatchBody, parent: string, field: string): boolean {
  if (type !== 'json') {
    const value = isObject(body) ? readAt(body, fieldPath(parent)) : undefined
    return isObject(value) && Boolean(value[field])
  }
  const pointer = `/${fieldPath(parent).join('/')}`
  const operations = Array.isArray(body) ? body : []
  return operations.some(one => {
    if (!isObject(one) || one['op'] === 'test' || one['op'] === 'remove') return false
    const { path, value } = one
    return path === `${pointer}/${field}` || (path === pointer && isObject(value) && Boolean(value[field]))
  })
}
