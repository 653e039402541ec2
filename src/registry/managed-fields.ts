// Field ownership after every write that is not an apply: the registry's create, update and patch call trackUpdate and store what it returns.

import type { JsonObject, ManagedFieldsEntry, Resource } from '../api/object.ts'
import {
  capUpdaters,
  disown,
  type Owners,
  ownable,
  ownerId,
  readOwners,
  withoutManagedFields,
  withoutMetadata,
  writeOwners,
} from './field-owners.ts'
import { type FieldSchema, type Shape, shapeOf } from './field-schema.ts'
import { isEmpty, union } from './field-set.ts'
import { problemsOf, TypedError } from './typed.ts'
import { type Comparison, compareTyped, isEqual } from './typed-compare.ts'
import { fitToSchema } from './typed-remove.ts'

export type UpdateRequest = {
  readonly manager: string
  /** Empty on the main resource. */
  readonly subresource: string
  readonly apiVersion: string
  /** RFC 3339 in whole seconds. */
  readonly now: string
  /** The kind has /status: writes to the main resource do not track the status, writes to it track nothing else. */
  readonly resetStatus: boolean
}

/**
 * The entries to store with `after`; none means that the object has no managedFields. What `after` itself carries
 * counts as sent by the client, who may replace the entries on the main resource, or clear them with `[]` or `[{}]`.
 * An object that does not fit its schema keeps the entries it had: a write never fails for its bookkeeping.
 */
export function trackUpdate(
  input: UpdateRequest & {
    readonly schema: FieldSchema
    readonly before: Resource | undefined
    readonly after: Resource
  },
): readonly ManagedFieldsEntry[] {
  const stored = input.before?.metadata.managedFields ?? []
  const owners = ownersBefore(stored, input)
  // Once cleared, tracking starts again with the first apply.
  if (owners.size === 0 && input.before !== undefined) return []
  const shape = shapeOf(input.schema)
  const after = withoutManagedFields(input.after)
  const before = input.before === undefined ? nothingOf(input.after) : withoutManagedFields(input.before)
  const isSound = (value: JsonObject) => problemsOf(shape, value, { repeats: true }).length === 0
  if (!isSound(after) || (input.before !== undefined && !isSound(before))) return stored
  recordUpdate(owners, { ...input, shape, before, after })
  capUpdaters(owners)
  return writeOwners(owners)
}

/** Entries that were sent and can be read, else the stored ones, lest a client that knows nothing of them loses them. */
function ownersBefore(
  stored: readonly ManagedFieldsEntry[],
  input: { readonly after: Resource; readonly subresource: string },
): Owners {
  const sent = input.after.metadata.managedFields
  const isSent = input.subresource === '' && sent !== undefined && sent !== null && !isEqual(sent, stored)
  if (isSent) {
    if (isReset(sent)) return new Map()
    const owners = readable(sent, { stored: false })
    if (owners.size > 0) return owners
  }
  return readable(stored, { stored: true })
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

/** The object as it was before it was: what it is, and nothing in it. */
export function nothingOf(object: Resource): JsonObject {
  return { apiVersion: object.apiVersion, kind: object.kind }
}

/** Whoever writes owns what the write changed, and everybody else loses it. Values must fit the shape. */
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

/** Whether a write would change nothing but the times of managedFields: then nothing is written and `before` is the answer. */
export function isSameApartFromTimes(before: Resource, after: Resource): boolean {
  return (
    isEqual(withoutManagedFields(before), withoutManagedFields(after)) &&
    isEqual(timeless(before.metadata.managedFields), timeless(after.metadata.managedFields))
  )
}

function timeless(entries: readonly ManagedFieldsEntry[] = []): JsonObject[] {
  return entries.map(entry => ({ ...entry, time: null }) as JsonObject)
}
