// Checks whether this version knows every field of a scope.
// An unknown field may be a restriction, so a scope with one grants nothing (D25).

import { isObject, type Json } from '../api/object.ts'
import type { Schema } from '../api/schema.ts'
import { scope as scopeSchema } from './shared-schema.ts'

export const isKnownScope = (scope: unknown): boolean =>
  scope === undefined || isKnown(scopeSchema as unknown as Schema, scope as Json)

function isKnown(schema: Schema, value: Json): boolean {
  if (Array.isArray(value)) return value.every(item => isKnown(schema.items ?? {}, item))
  if (!isObject(value)) return true
  const properties = schema.properties ?? {}
  return Object.keys(value).every(
    key => Object.hasOwn(properties, key) && isKnown(properties[key] as Schema, value[key] as Json),
  )
}
