// What is said of an object whose sealed fields do not open (D28): by itself an error with its reason, among others without those fields.

import { type ApiError, isSealBroken } from '../api/errors.ts'
import { fieldPath, writeAt } from '../api/field-path.ts'
import type { Kind } from '../api/kind.ts'
import type { JsonObject, Resource } from '../api/object.ts'
import { type Document, documentOf } from '../api/resources.ts'
import type { Entry } from '../storage/store.ts'
import type { Context } from './context.ts'
import { load, present, visible } from './object-codec.ts'

/** As `present`, for an object among others: one that does not open must not hide the rest. */
export function presentAmong(ctx: Context, kind: Kind, entry: Entry): Document {
  try {
    return present(ctx, kind, entry)
  } catch (error) {
    if (!isSealBroken(error)) throw error
    return documentOf(brokenView(ctx, kind, JSON.parse(entry.text.toString()) as Resource, error))
  }
}

/** What can be told of it, and a condition that says what cannot. Nothing can be written that was read so. */
function brokenView(ctx: Context, kind: Kind, stored: Resource, { message }: ApiError): Resource {
  const bare = kind.sealed.reduce(
    (object, path) => writeAt(object, fieldPath(path), undefined),
    stored as unknown as JsonObject,
  ) as unknown as Resource
  const { conditions = [], ...status } = (bare.status ?? {}) as { readonly conditions?: readonly JsonObject[] }
  const broken = { type: 'Readable', status: 'False', reason: 'SealBroken', message }
  return visible(ctx, kind, { ...bare, status: { ...status, conditions: [...conditions, broken] } })
}

/** An object that is to be removed: it goes whether it opens or not. `sealed`: its sealed fields are as they lie there. */
export function loadToRemove(
  ctx: Context,
  kind: Kind,
  entry: Entry,
): { readonly old: Resource; readonly sealed: boolean } {
  try {
    return { old: load(ctx, kind, entry), sealed: false }
  } catch (error) {
    if (!isSealBroken(error)) throw error
    return { old: JSON.parse(entry.text.toString()) as Resource, sealed: true }
  }
}
