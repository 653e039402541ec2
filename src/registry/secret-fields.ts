// Finds secret fields in a write, so that its response does not reveal their values (D5).
// A write that sets a secret field counts as a change, even if the value is the same.

import { type FieldPath, fieldPath, readAt, touches, writeAt } from '../api/field-path.ts'
import { parsePointer } from '../api/json-pointer.ts'
import type { Kind } from '../api/kind.ts'
import { isObject, type Json, type JsonObject, type Ref, type Resource } from '../api/object.ts'
import type { PatchBody } from '../api/resources.ts'
import type { Schema } from '../api/schema.ts'
import type { Context } from './context.ts'

/**
 * Hidden and write-only fields, and encrypted fields if the caller may not get the object. The server itself sees all
 * fields.
 */
export function secretFields(ctx: Context, kind: Kind, ref: Ref): readonly FieldPath[] {
  if (ctx.isInternal) return []
  const secret = [...kind.hidden, ...kind.writeOnly]
  if (kind.sealed.length && !maySee(ctx, kind, ref)) secret.push(...kind.sealed, ...Object.keys(kind.textForms))
  return secret.map(fieldPath)
}

export function maySee(ctx: Context, kind: Kind, ref: Ref): boolean {
  if (ctx.isInternal) return true
  const target = { group: kind.group, resource: kind.plural, ...ref }
  return ctx.authorize(ctx.caller, { verb: 'get', target }).allowed
}

/**
 * The object of a dry run, with the stored values of fields that the server never shows. The response shows the same for all
 * values: it confirms no guess, and an unchanged manifest has no diff.
 */
export function withStoredSecrets(kind: Kind, next: Resource, old: Resource): Resource {
  let object = next as unknown as JsonObject
  for (const path of kind.hidden.map(fieldPath)) {
    const stored = readAt(old as unknown as JsonObject, path)
    if (stored !== readAt(object, path)) object = writeAt(object, path, stored)
  }
  return object as unknown as Resource
}

/** Whether the server never shows a field. */
export const isNeverShown = (kind: Kind, path: FieldPath): boolean =>
  [...kind.hidden, ...kind.writeOnly].some(text => fieldPath(text).every((step, index) => path[index] === step))

const outside = ['apiVersion', 'kind', 'metadata']

/** Whether a write sets more than metadata. Such a write counts as a change if the caller may not get the object. */
export function setsFields({ type, body }: PatchBody): boolean {
  if (type !== 'json') return isObject(body) && Object.keys(body).some(key => !outside.includes(key))
  return (body as readonly Json[]).some(operation => {
    const { path } = (isObject(operation) ? operation : {}) as JsonObject
    const [first] = typeof path === 'string' ? (parsePointer(path) ?? []) : []
    return first === undefined || !outside.includes(first)
  })
}

/**
 * Fields of an apply configuration whose values a conflict could reveal. Items of a set have no values, so managers
 * that apply the same item never conflict.
 */
export function fieldsOfConfiguration(schema: Schema, config: JsonObject): FieldPath[] {
  return Object.keys(config).flatMap(key => {
    const value = config[key] as Json
    const own = schema.properties && Object.hasOwn(schema.properties, key) ? schema.properties[key] : undefined
    const below = own ?? additional(schema)
    const size = isObject(value) ? Object.keys(value).length : 0
    if (isObject(value) && size > 0 && size <= maxMembers)
      return fieldsOfConfiguration(below ?? {}, value).map(path => [key, ...path])
    return below?.['x-kubernetes-list-type'] === 'set' ? [] : [[key]]
  })
}

/** Each path costs a copy of its map, so a larger map counts as one field. */
const maxMembers = 100

const additional = ({ additionalProperties }: Schema): Schema | undefined =>
  typeof additionalProperties === 'object' ? additionalProperties : undefined

/** The secret fields that an object or a merge patch sets, or the members if the field is a map. */
export const writtenBy = (secret: readonly FieldPath[], body: Json): readonly FieldPath[] =>
  secret.flatMap(path => membersAt(path, isObject(body) ? readAt(body, path) : undefined))

const membersAt = (path: FieldPath, value: Json | undefined): FieldPath[] =>
  value === undefined ? [] : isObject(value) ? Object.keys(value).map(key => [...path, key]) : [path]

export function writtenByPatch(secret: readonly FieldPath[], { type, body }: PatchBody): readonly FieldPath[] {
  if (secret.length === 0) return []
  if (type !== 'json') return writtenBy(secret, body)
  return (body as readonly Json[]).flatMap(operation => {
    const { path: pointer, value } = (isObject(operation) ? operation : {}) as JsonObject
    const steps = (typeof pointer === 'string' && parsePointer(pointer)) || []
    return secret.flatMap(path => {
      if (!touches(path, steps)) return []
      if (steps.length >= path.length) return [steps.slice(0, path.length + 1)]
      return membersAt(path, isObject(value) ? readAt(value, path.slice(steps.length)) : undefined)
    })
  })
}
