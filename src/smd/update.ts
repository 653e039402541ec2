// Tracks field ownership of creates, updates and patches.

import type { Json, JsonObject, ManagedFieldsEntry, Resource } from '../api/object.ts'
import { type Comparison, compareTyped, isEqual } from './compare.ts'
import { isEmpty, union } from './field-set.ts'
import {
  capUpdaters,
  disown,
  isTracked,
  type Owners,
  ownable,
  ownerId,
  readOwners,
  withoutManagedFields,
  withoutMetadata,
  writeOwners,
} from './managers.ts'
import { fitToSchema } from './remove.ts'
import { type FieldSchema, type Shape, shapeOf } from './schema.ts'
import { problemsOf, TypedError } from './typed.ts'
import { changedFields, hasPath, hasSameFields, isAbout, ownsNothing, skeletonOf } from './update-fast-path.ts'

export type UpdateRequest = {
  readonly manager: string
  /** Empty for the main resource. */
  readonly subresource: string
  readonly apiVersion: string
  /** RFC 3339 in whole seconds. */
  readonly now: string
  /**
   * The kind has /status: writes of the main resource do not track the status, and writes of /status track nothing
   * else.
   */
  readonly resetStatus: boolean
}

/**
 * Returns the entries to store with `after`; an empty list means no managedFields. Entries in `after` come from the
 * client, which may replace them on the main resource, or clear them with `[]` or `[{}]`. An invalid object keeps its
 * entries, because a write never fails for its bookkeeping.
 */
export function trackUpdate(input: Tracked): readonly ManagedFieldsEntry[] {
  const stored = input.before?.metadata.managedFields ?? []
  return trackInPlace(stored, input) ?? trackNewLikeLast(input) ?? trackAnew(stored, input)
}

type Tracked = UpdateRequest & {
  readonly schema: FieldSchema
  readonly before: Resource | undefined
  readonly after: Resource
}

function trackAnew(stored: readonly ManagedFieldsEntry[], input: Tracked): readonly ManagedFieldsEntry[] {
  const owners = ownersBefore(stored, input)
  // After a reset, tracking starts again with the first apply.
  if (owners.size === 0 && input.before !== undefined) return []
  const shape = shapeOf(input.schema)
  const after = withoutManagedFields(input.after)
  const before = input.before === undefined ? identityOf(input.after) : withoutManagedFields(input.before)
  const isValid = (value: JsonObject) => problemsOf(shape, value, { repeats: true }).length === 0
  if (!isValid(after) || (input.before !== undefined && !isValid(before))) return stored
  recordUpdate(owners, { ...input, shape, before, after })
  capUpdaters(owners)
  const entries = writeOwners(owners)
  if (input.before === undefined && entries.length === 1)
    lastCreated.set(shape, { skeleton: skeletonOf(shape, after), entry: entries[0] as ManagedFieldsEntry })
  return entries
}

/** If only values changed, of fields that only this manager owns, just the time changes. undefined: not the case. */
function trackInPlace(
  stored: readonly ManagedFieldsEntry[],
  input: Tracked,
): readonly ManagedFieldsEntry[] | undefined {
  const own = stored.at(-1)
  if (!input.before || !own || !isOf(own, input) || isSent(stored, input)) return undefined
  // The last entry stays the last unless the clock went back.
  if ((own.time ?? '') > input.now) return undefined
  const changed = changedFields(
    shapeOf(input.schema),
    withoutManagedFields(input.before),
    withoutManagedFields(input.after),
  )?.filter(path => isTracked(path, input))
  if (!changed?.every(path => hasPath(own, path))) return undefined
  const isTouched = (entry: ManagedFieldsEntry) => ownsNothing(entry) || changed.some(path => isAbout(entry, path))
  if (stored.some(entry => entry !== own && isTouched(entry))) return undefined
  return changed.length === 0 ? stored : [...stored.slice(0, -1), { ...own, time: input.now }]
}

/** The fields of the last created object of each shape, with its entry. */
const lastCreated = new WeakMap<Shape, { readonly skeleton: Json; readonly entry: ManagedFieldsEntry }>()

function trackNewLikeLast(input: Tracked): readonly ManagedFieldsEntry[] | undefined {
  if (input.before || input.after.metadata.managedFields) return undefined
  const shape = shapeOf(input.schema)
  const last = lastCreated.get(shape)
  if (!last || !isOf(last.entry, input) || !hasSameFields(shape, last.skeleton, withoutManagedFields(input.after)))
    return undefined
  return [{ ...last.entry, time: input.now }]
}

const isOf = (entry: ManagedFieldsEntry, { manager, apiVersion, subresource }: UpdateRequest) =>
  entry.operation === 'Update' &&
  entry.manager === (manager || 'unknown') &&
  entry.apiVersion === apiVersion &&
  (entry.subresource ?? '') === subresource

/**
 * The entries of the client if valid, else the stored ones, so that a client that does not know them does not remove
 * them.
 */
function ownersBefore(
  stored: readonly ManagedFieldsEntry[],
  input: { readonly after: Resource; readonly subresource: string },
): Owners {
  if (isSent(stored, input)) {
    const sent = input.after.metadata.managedFields ?? []
    if (isReset(sent)) return new Map()
    const owners = readable(sent, { stored: false })
    if (owners.size > 0) return owners
  }
  return readable(stored, { stored: true })
}

/** Whether the client sent other entries than the stored ones. */
function isSent(
  stored: readonly ManagedFieldsEntry[],
  { after, subresource }: { readonly after: Resource; readonly subresource: string },
): boolean {
  const sent = after.metadata.managedFields
  return subresource === '' && sent !== undefined && sent !== null && !isEqual(sent, stored)
}

function isReset(sent: readonly ManagedFieldsEntry[]): boolean {
  return sent.length === 0 || (sent.length === 1 && isEqual(sent[0], {}))
}

function readable(entries: readonly ManagedFieldsEntry[], options: { readonly stored: boolean }): Owners {
  try {
    return readOwners(entries, options)
  } catch (error) {
    if (error instanceof TypedError) return new Map()
    throw error
  }
}

/** The identity of the object, without its contents. */
export function identityOf(object: Resource): JsonObject {
  return { apiVersion: object.apiVersion, kind: object.kind }
}

/** The writer owns the changed fields, and all others lose them. Values must match the shape. */
export function recordUpdate(
  owners: Owners,
  update: UpdateRequest & { readonly shape: Shape; readonly before: JsonObject; readonly after: JsonObject },
): void {
  fitOwners(owners, update.shape)
  const change = trackedChange(compareTyped(update.shape, update.before, update.after), update)
  disown(owners, change)
  const fields = withoutMetadata(union(change.modified, change.added))
  if (isEmpty(fields)) return
  const { apiVersion, subresource, now: time } = update
  const owner = { manager: update.manager || 'unknown', operation: 'Update', apiVersion, subresource } as const
  const id = ownerId(owner)
  const previous = owners.get(id)
  owners.set(id, { ...owner, time, fields: previous === undefined ? fields : union(fields, previous.fields) })
}

export function fitOwners(owners: Owners, shape: Shape): void {
  for (const [id, owner] of owners) {
    const fields = fitToSchema(owner.fields, shape)
    if (fields !== owner.fields) owners.set(id, { ...owner, fields, entry: undefined })
  }
}

export function trackedChange(change: Comparison, request: UpdateRequest): Comparison {
  return {
    added: ownable(change.added, request),
    modified: ownable(change.modified, request),
    removed: ownable(change.removed, request),
  }
}

/** Whether a write changes only the times of managedFields. Then nothing is stored, and `before` is the response. */
export function isSameApartFromTimes(before: Resource, after: Resource): boolean {
  return (
    isEqual(withoutManagedFields(before), withoutManagedFields(after)) &&
    isEqual(timeless(before.metadata.managedFields), timeless(after.metadata.managedFields))
  )
}

function timeless(entries: readonly ManagedFieldsEntry[] = []): JsonObject[] {
  return entries.map(entry => ({ ...entry, time: null }) as JsonObject)
}
