// Finds the managers of the fields of an object, in metadata.managedFields.

import { isObject, type Json, type JsonObject, type Resource } from '../../api/object.ts'
import { editable, isEqual, pathText } from './difference.ts'

/** The way to a field, in the format of FieldsV1: `f:spec`, `f:projects`, `k:{"project":"shop"}`. */
export type OwnedField = readonly string[]

export type Manager = {
  readonly name: string
  /** Whether it applies its fields again and again, as GitOps tools do. Otherwise it has set them once. */
  readonly isApplied: boolean
  readonly time?: string | undefined
  readonly fields: readonly OwnedField[]
}

/** The managers of the fields that an editor shows; by default the YAML editor, which does not show the status. */
export function managersOf(
  object: Resource,
  shown: JsonObject = editable(object as unknown as JsonObject),
): readonly Manager[] {
  return (object.metadata.managedFields ?? [])
    .map(({ manager = '', operation, time, fieldsV1 = {} }) => ({
      name: manager,
      isApplied: operation === 'Apply',
      time,
      fields: leavesIn(fieldsV1).filter(field => placeOf(shown, field) !== undefined),
    }))
    .filter(({ fields }) => fields.length > 0)
}

function leavesIn(set: JsonObject): readonly OwnedField[] {
  return Object.entries(set)
    .filter(([element]) => element !== '.')
    .flatMap(([element, inner]) => {
      const below = isObject(inner) ? leavesIn(inner) : []
      return below.length ? below.map(field => [element, ...field]) : [[element]]
    })
}

type Place = readonly (string | number)[]

/** Keys and indexes of a field in a value; undefined: it has no such field. */
export function placeOf(value: Json, field: OwnedField): Place | undefined {
  const place: (string | number)[] = []
  let at: Json | undefined = value
  for (const element of field) {
    const step = stepTo(at, element)
    if (step === undefined) return undefined
    place.push(step)
    at = childOf(at, step)
  }
  return place
}

function stepTo(value: Json | undefined, element: string): string | number | undefined {
  const name = element.slice(2)
  if (isObject(value)) return element.startsWith('f:') && Object.hasOwn(value, name) ? name : undefined
  if (!Array.isArray(value)) return undefined
  const wanted = parsed(name)
  const index = element.startsWith('i:')
    ? Number(name)
    : value.findIndex(element.startsWith('k:') ? item => hasKeys(item, wanted) : item => isEqual(item, wanted))
  return value[index] === undefined ? undefined : index
}

const hasKeys = (item: Json, keys: Json | undefined): boolean =>
  isObject(item) && isObject(keys) && Object.entries(keys).every(([key, value]) => isEqual(item[key], value))

function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}

const childOf = (value: Json | undefined, step: string | number): Json | undefined =>
  (value as { readonly [step: string]: Json } | undefined)?.[step]

const valueAt = (object: Json, field: OwnedField): Json | undefined =>
  placeOf(object, field)?.reduce<Json | undefined>(childOf, object)

/** The managers other than `self` whose fields an edit changes or removes, with these fields. */
export function affectedManagers(
  managers: readonly Manager[],
  { from, to, self }: { readonly from: JsonObject; readonly to: JsonObject; readonly self: string },
): readonly Manager[] {
  const isChanged = (field: OwnedField) => !isEqual(valueAt(from, field), valueAt(to, field))
  return managers
    .filter(({ name }) => name !== self)
    .map(manager => ({ ...manager, fields: manager.fields.filter(isChanged) }))
    .filter(({ fields }) => fields.length > 0)
}

/** `spec.displayName`, `spec.projects[project="shop"].namespaces[="b"]`: as kubectl prints conflicts. */
export const fieldName = (field: OwnedField): string => field.map(elementName).join('').replace(/^\./, '')

function elementName(element: string): string {
  const rest = element.slice(2)
  if (element.startsWith('f:')) return pathText([rest]).replace(/^(?!\[)/, '.')
  if (element.startsWith('v:')) return `[=${rest}]`
  const keys = parsed(rest)
  if (!isObject(keys)) return `[${rest}]`
  return `[${Object.entries(keys).map(([key, value]) => `${key}=${JSON.stringify(value)}`)}]`
}
