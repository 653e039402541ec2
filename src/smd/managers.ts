// Reads, changes and writes the field owners in metadata.managedFields.

import { isObject, type JsonObject, type ManagedFieldsEntry, type Resource, timestamp } from '../api/object.ts'
import type { Comparison } from './compare.ts'
import {
  difference,
  type FieldPath,
  type FieldSet,
  fieldSetOf,
  has,
  isEmpty,
  NO_FIELDS,
  rebuild,
  union,
} from './field-set.ts'
import { readFieldsV1, writeFieldsV1 } from './fields-v1.ts'
import { TypedError } from './typed.ts'

export type Owner = {
  readonly manager: string
  readonly operation: 'Apply' | 'Update'
  readonly apiVersion: string
  readonly subresource: string
  readonly time: string | undefined
  readonly fields: FieldSet
  /** The stored entry, until something about the owner changes. Most entries are written back unchanged. */
  readonly entry?: ManagedFieldsEntry | undefined
}

/** Keyed by `ownerId`. */
export type Owners = Map<string, Owner>

/** With more updaters, the oldest are merged. */
const MAX_UPDATERS = 10
const OLD_UPDATES = 'ancient-changes'

/** Fields of identity and bookkeeping, which nobody can own. */
const NEVER_OWNED = fieldSetOf([
  ['f:apiVersion'],
  ['f:kind'],
  ['f:metadata'],
  ...[
    'name',
    'namespace',
    'creationTimestamp',
    'selfLink',
    'uid',
    'clusterName',
    'generation',
    'managedFields',
    'resourceVersion',
  ].map(name => ['f:metadata', `f:${name}`]),
])

export function withoutMetadata(fields: FieldSet): FieldSet {
  return difference(fields, NEVER_OWNED)
}

/**
 * An applier is one owner for all API versions. An updater is a separate owner in each version. Also the order of
 * conflicts in messages.
 */
export function ownerId(owner: Pick<Owner, 'manager' | 'operation' | 'apiVersion' | 'subresource'>): string {
  return JSON.stringify({
    manager: owner.manager === '' ? undefined : owner.manager,
    operation: owner.operation,
    apiVersion: owner.operation === 'Apply' ? undefined : owner.apiVersion,
    subresource: owner.subresource === '' ? undefined : owner.subresource,
  })
}

/** Throws a TypedError if an entry is invalid. Stored entries are canonical. */
export function readOwners(
  entries: readonly ManagedFieldsEntry[] | undefined,
  options: { readonly stored: boolean },
): Owners {
  const owners: Owners = new Map()
  if (!Array.isArray(entries ?? [])) throw new TypedError(['managedFields must be a list'])
  for (const [index, entry] of (entries ?? []).entries()) {
    if (!isObject(entry)) throw new TypedError([`managed fields entry ${index} must be an object`])
    const owner = readOwner(entry, index)
    owners.set(ownerId(owner), options.stored ? { ...owner, entry } : owner)
  }
  return owners
}

function readOwner(entry: ManagedFieldsEntry, index: number): Owner {
  const { manager = '', operation, apiVersion = '', subresource = '', fieldsType = '', fieldsV1, time } = entry
  if (operation !== 'Apply' && operation !== 'Update') throw new TypedError(['operation must be `Apply` or `Update`'])
  if (typeof apiVersion !== 'string' || apiVersion === '') throw new TypedError(['apiVersion must not be empty'])
  if (fieldsType !== 'FieldsV1') {
    const problem =
      (fieldsType as string) === '' ? 'missing fieldsType' : `invalid fieldsType ${JSON.stringify(fieldsType)}`
    throw new TypedError([`${problem} in managed fields entry ${index}`])
  }
  if (typeof manager !== 'string' || typeof subresource !== 'string')
    throw new TypedError(['manager and subresource must be text'])
  return { manager, operation, apiVersion, subresource, time: readTime(time), fields: readFields(fieldsV1) }
}

function readFields(fields: JsonObject | undefined): FieldSet {
  // A client may send any value.
  if (fields === undefined || fields === null) return NO_FIELDS
  if (!isObject(fields)) throw new TypedError(['error decoding set: expected an object'])
  try {
    return readFieldsV1(fields)
  } catch (error) {
    if (error instanceof SyntaxError) throw new TypedError([`error decoding set: ${error.message}`])
    throw error
  }
}

function readTime(time: string | undefined): string | undefined {
  if (time === undefined || time === null) return undefined
  const milliseconds = typeof time === 'string' ? Date.parse(time) : Number.NaN
  if (Number.isNaN(milliseconds)) throw new TypedError([`invalid time ${JSON.stringify(time)}`])
  return time.length === 20 && time.endsWith('Z') ? time : timestamp(milliseconds)
}

/** Appliers first, then by time, then by name. */
export function writeOwners(owners: Owners): readonly ManagedFieldsEntry[] {
  return [...owners.values()].sort(compareOwners).map(owner => owner.entry ?? writeOwner(owner))
}

function writeOwner(owner: Owner): ManagedFieldsEntry {
  return {
    apiVersion: owner.apiVersion,
    fieldsType: 'FieldsV1',
    fieldsV1: writeFieldsV1(owner.fields),
    ...(owner.manager === '' ? undefined : { manager: owner.manager }),
    operation: owner.operation,
    ...(owner.subresource === '' ? undefined : { subresource: owner.subresource }),
    ...(owner.time === undefined ? undefined : { time: owner.time }),
  }
}

function compareOwners(a: Owner, b: Owner): number {
  return (
    compareTexts(a.operation, b.operation) ||
    compareTexts(a.time ?? '', b.time ?? '') ||
    compareTexts(a.manager, b.manager) ||
    compareTexts(a.apiVersion, b.apiVersion) ||
    compareTexts(a.subresource, b.subresource)
  )
}

/** All times are UTC in whole seconds, so they sort as strings. */
function compareTexts(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}

/**
 * The fields that a request may own. If the kind has a status subresource, the main resource does not own the status,
 * and /status owns nothing else.
 */
export function ownable(
  fields: FieldSet,
  request: { readonly subresource: string; readonly resetStatus: boolean },
): FieldSet {
  if (!request.resetStatus) return fields
  const isStatus = request.subresource === 'status'
  return rebuild(fields, false, (element, child) => ((element === 'f:status') === isStatus ? child : NO_FIELDS))
}

/** Whether a request that changes this field may own it. */
export function isTracked(
  path: FieldPath,
  { resetStatus, subresource }: { readonly subresource: string; readonly resetStatus: boolean },
): boolean {
  if (has(NEVER_OWNED, path)) return false
  return !resetStatus || (path[0] === 'f:status') === (subresource === 'status')
}

/** Removes changed fields from all owners except the one that changed them, and drops owners without fields. */
export function disown(owners: Owners, change: Comparison, except?: string): void {
  for (const [id, owner] of owners) {
    const fields =
      id === except
        ? owner.fields
        : difference(difference(owner.fields, union(change.modified, change.added)), change.removed)
    if (isEmpty(fields)) owners.delete(id)
    else if (fields !== owner.fields) owners.set(id, { ...owner, fields, entry: undefined })
  }
}

/** Merges the oldest updaters, one entry per version, until at most ten are left. */
export function capUpdaters(owners: Owners): void {
  const updaters = [...owners].filter(([, owner]) => owner.operation === 'Update')
  let excess = updaters.length - MAX_UPDATERS
  if (excess <= 0) return
  updaters.sort(([a, one], [b, other]) => compareTexts(one.time ?? '', other.time ?? '') || compareTexts(a, b))
  const oldest = new Map<string, Owner & { readonly id: string }>()
  for (const [id, owner] of updaters) {
    if (excess <= 0) return
    const first = oldest.get(owner.apiVersion)
    if (first === undefined) {
      oldest.set(owner.apiVersion, { ...owner, id })
      continue
    }
    const bucket = { manager: OLD_UPDATES, operation: 'Update', apiVersion: owner.apiVersion, subresource: '' } as const
    const bucketId = ownerId(bucket)
    const kept = id === bucketId ? undefined : owners.get(bucketId)
    // Keep the first entry of a version until a second one joins it, unless there is a merged entry already.
    if (kept === undefined) owners.delete(first.id)
    owners.delete(id)
    owners.set(bucketId, { ...bucket, time: owner.time, fields: union(owner.fields, (kept ?? first).fields) })
    excess--
  }
}

/** The object without its managedFields. */
export function withoutManagedFields(object: Resource): JsonObject {
  // An applied configuration may lack metadata.
  const { managedFields: _, ...metadata } = object.metadata ?? {}
  return { ...object, metadata } as unknown as JsonObject
}
