// Limits the number of fields in metadata.managedFields (D72). Every write of an object reads all of them.

import { type FieldError, invalid, tooLong, tooMany, tooManyReason } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import { isObject, type Json, keysOf, type ManagedFieldsEntry, type Metadata } from '../api/object.ts'
import { isEqual } from '../smd/compare.ts'

type Entries = readonly ManagedFieldsEntry[] | undefined

const maxFields = 10_000
/** Updaters come on top. Both together stay below the limit of the schema. */
const maxAppliers = 200
/** Entries of a client cost twice as much, because they need not be in the canonical form. */
const maxSent = 5000
/** The names of schema.ts, escaped, with a prefix. V8 hashes longer keys by their length alone. */
const maxKey = 16_383

/**
 * Updates need no check: a field has at most one updater, so the object limits their number. Stored entries beyond the
 * limit may stay or become fewer.
 */
export function limitApplied(kind: Kind, { name = '', managedFields: before }: Metadata, after: Entries): void {
  const appliers = countAppliers(after)
  if (appliers > maxAppliers && appliers > countAppliers(before))
    throw invalid(kind, name, [tooMany('metadata.managedFields', appliers, maxAppliers)])
  const count = countFields(after)
  if (count > maxFields && count > countFields(before)) throw invalid(kind, name, [tooManyFields(count, maxFields)])
}

/** A client may send the entries that it has read, whatever their number. */
export function limitSent(kind: Kind, { name = '', managedFields: stored }: Metadata, sent: Entries): void {
  const count = countFields(sent)
  const isLong = Array.isArray(sent) && sent.some((entry: unknown) => isObject(entry) && hasLongKey(entry['fieldsV1']))
  if ((count <= maxSent && !isLong) || isEqual(sent as unknown as Json, stored as unknown as Json)) return
  throw invalid(kind, name, [
    isLong ? tooLong('metadata.managedFields (a field)', maxKey) : tooManyFields(count, maxSent),
  ])
}

const tooManyFields = (count: number, most: number): FieldError => ({
  reason: tooManyReason,
  field: 'metadata.managedFields',
  message: `Too many: ${count}: must have at most ${most} fields of all managers; an empty list resets them`,
})

const countAppliers = (entries: Entries = []) => entries.filter(({ operation }) => operation === 'Apply').length

/** A client may send any value. */
function countFields(entries: Entries): number {
  if (!Array.isArray(entries)) return 0
  return entries.reduce((sum: number, entry: unknown) => sum + (isObject(entry) ? countIn(entry['fieldsV1']) : 0), 0)
}

const hasLongKey = (fields: unknown): boolean =>
  isObject(fields) && keysOf(fields).some(key => key.length > maxKey || hasLongKey(fields[key]))

function countIn(fields: unknown): number {
  if (!isObject(fields)) return 0
  let count = 0
  for (const key of keysOf(fields)) if (key !== '.') count += 1 + countIn(fields[key])
  return count
}
