// Implements server-side apply: merges a configuration into the live object, and tracks, checks and prunes its fields.

import { withoutFields } from '../api/field-path.ts'
import type { Json, JsonObject, ManagedFieldsEntry, Resource } from '../api/object.ts'
import { compareTyped, isEqual } from './compare.ts'
import { ApplyConflict, type FieldConflict } from './conflict.ts'
import {
  difference,
  type FieldPath,
  type FieldSet,
  has,
  intersection,
  isEmpty,
  NO_FIELDS,
  pathsOf,
  union,
} from './field-set.ts'
import { fieldsOfLastApplied, refreshLastApplied } from './last-applied.ts'
import {
  disown,
  type Owners,
  ownable,
  ownerId,
  readOwners,
  withoutManagedFields,
  withoutMetadata,
  writeOwners,
} from './managers.ts'
import { mergeTyped } from './merge.ts'
import { printPath } from './path-element.ts'
import { removeFields, withNamedFields } from './remove.ts'
import { type FieldSchema, type Shape, shapeOf } from './schema.ts'
import { fieldsOf, problemsOf, TypedError } from './typed.ts'
import { fitOwners, identityOf, recordUpdate, trackedChange, type UpdateRequest } from './update.ts'

export { ApplyConflict, applyConflictStatus } from './conflict.ts'

const BEFORE_FIRST_APPLY = 'before-first-apply'
const KUBECTL = 'kubectl'

export type ApplyRequest = UpdateRequest & {
  readonly schema: FieldSchema
  /** undefined: the apply creates the object. */
  readonly live: Resource | undefined
  readonly config: Resource
  readonly force: boolean
  /** Secret fields that the request sets. Setting one counts as a change, even with the same value (D5). */
  readonly written?: readonly (readonly string[])[]
}

/**
 * Returns the merged object with its managedFields, or `live` itself if nothing changes. Later changes by the registry,
 * such as defaults and admission, have no owner, so they do not affect managedFields. Throws ApplyConflict, or
 * TypedError for an invalid configuration.
 */
export function applyConfiguration(input: ApplyRequest): { readonly object: Resource } {
  const shape = shapeOf(input.schema)
  const owners = ownersOf(input.live)
  const config = validated(shape, input.config, 'patch')
  const live = input.live === undefined ? identityOf(input.config) : validated(shape, input.live, 'live')
  if (owners.size === 0) {
    recordUpdate(owners, {
      ...input,
      shape,
      manager: BEFORE_FIRST_APPLY,
      before: identityOf(input.config),
      after: live,
    })
  }
  fitOwners(owners, shape)
  const merged = merge(owners, { ...input, shape, live, config })
  const object = input.manager === KUBECTL ? refreshLastApplied(merged, config) : merged
  const result = withEntries(object, writeOwners(owners))
  const isSame = input.live !== undefined && isEqual(result, input.live as unknown as Json)
  return { object: isSame ? input.live : (result as unknown as Resource) }
}

function ownersOf(live: Resource | undefined): Owners {
  try {
    return readOwners(live?.metadata.managedFields, { stored: true })
  } catch (error) {
    if (error instanceof TypedError) throw new TypedError(error.problems, 'live')
    throw error
  }
}

/** The object without its managedFields, which a configuration must not have. */
function validated(shape: Shape, object: Resource, subject: 'patch' | 'live'): JsonObject {
  const entries: unknown = object.metadata?.managedFields
  if (subject === 'patch' && entries !== undefined && entries !== null) {
    throw new TypedError(['metadata.managedFields must be nil'])
  }
  const value = withoutManagedFields(object)
  // Stored duplicate items must not block every later apply.
  const problems = problemsOf(shape, value, { repeats: subject === 'live' })
  if (problems.length > 0) throw new TypedError(problems, subject)
  return value
}

type Merge = Omit<ApplyRequest, 'live' | 'config'> & {
  readonly shape: Shape
  readonly live: JsonObject
  readonly config: JsonObject
}

/** Returns the new value, and updates `owners`. */
function merge(owners: Owners, apply: Merge): JsonObject {
  const { shape, live, config, manager, apiVersion, subresource } = apply
  const owner = { manager: manager || 'unknown', operation: 'Apply', apiVersion, subresource } as const
  const id = ownerId(owner)
  const last = owners.get(id)
  const fields = ownable(fieldsOf(shape, config), apply)
  owners.set(id, { ...owner, time: last?.time, fields })
  const all = mergeTyped(shape, live, config) as JsonObject
  // Most configurations have all fields of the last one, so that nothing can be pruned.
  const dropsNone = isEmpty(difference(last?.fields ?? NO_FIELDS, fields))
  const next = dropsNone ? all : (prune(shape, all, last?.fields ?? NO_FIELDS, owners) as JsonObject)
  const before = withoutFields(live, apply.written ?? [])
  const change = trackedChange(compareTyped(shape, before, next), apply)
  if (!apply.force) refuseConflicts(contested(owners, union(change.modified, change.added), id), apply)
  disown(owners, change, id)
  // A configuration that changes no value keeps the time of the entry.
  const isSame = isEqual(before, next)
  const owned = withoutMetadata(fields)
  if (isEmpty(owned)) owners.delete(id)
  else owners.set(id, { ...owner, time: isSame ? last?.time : apply.now, fields: owned })
  return isSame ? live : next
}

/**
 * Removes fields that this applier applied before and does not apply now. Keeps them if another manager owns them, or
 * if fields that it never applied would go with them.
 */
function prune(shape: Shape, merged: Json, last: FieldSet, owners: Owners): Json {
  const dropped = withNamedFields(last, shape)
  const present = withNamedFields(fieldsOf(shape, merged), shape)
  const remaining = (value: Json): FieldSet => withNamedFields(fieldsOf(shape, value), shape)
  const bare = removeFields(shape, merged, dropped, { hollow: false })
  const claimed = withNamedFields([...owners.values()].map(owner => owner.fields).reduce(union), shape)
  const unclaimed = difference(present, union(remaining(bare), claimed))
  const kept = removeFields(shape, merged, unclaimed, { hollow: false })
  const gone = intersection(difference(present, remaining(kept)), dropped)
  return removeFields(shape, merged, gone, { hollow: true })
}

type Contested = { readonly conflict: FieldConflict; readonly path: FieldPath }

function contested(owners: Owners, taken: FieldSet, except: string): Contested[] {
  return [...owners.keys()]
    .filter(id => id !== except)
    .sort()
    .flatMap(id => {
      const { fields, entry: _, ...owner } = owners.get(id)!
      return pathsOf(intersection(fields, taken)).map(path => ({ path, conflict: { ...owner, path: printPath(path) } }))
    })
}

function refuseConflicts(all: readonly Contested[], apply: Merge): void {
  if (all.length === 0) return
  // When kubectl migrates from client-side apply, it takes over the fields that it applied itself (kubernetes-wire
  // §1.14).
  const own = apply.manager === KUBECTL ? fieldsOfLastApplied(apply.shape, apply.live, apply.apiVersion) : NO_FIELDS
  const others = all.filter(({ path }) => !has(own, path))
  if (others.length > 0) throw new ApplyConflict(others.map(({ conflict }) => conflict))
}

function withEntries(object: JsonObject, entries: readonly ManagedFieldsEntry[]): JsonObject {
  const metadata = object['metadata'] as JsonObject | undefined
  if (entries.length === 0) return metadata === undefined ? { ...object, metadata: {} } : object
  return { ...object, metadata: { ...metadata, managedFields: entries as Json } }
}
