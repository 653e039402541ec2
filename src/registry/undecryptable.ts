// Shows objects with undecryptable fields (D28): a get fails with the reason, a list leaves the fields out.

import { type ApiError, isUndecryptable } from '../api/errors.ts'
import { fieldPath, writeAt } from '../api/field-path.ts'
import type { Kind } from '../api/kind.ts'
import type { JsonObject, Resource } from '../api/object.ts'
import { type Document, documentOf } from '../api/resources.ts'
import type { Entry } from '../storage/store.ts'
import type { Context } from './context.ts'
import { loadToReplace, present, visible } from './object-codec.ts'

/** Like `present`, for lists and watches: one undecryptable object must not hide the others. */
export function presentAmong(ctx: Context, kind: Kind, entry: Entry): Document {
  try {
    return present(ctx, kind, entry)
  } catch (error) {
    if (!isUndecryptable(error)) throw error
    return documentOf(brokenView(ctx, kind, JSON.parse(entry.text.toString()) as Resource, error))
  }
}

/** The readable fields, and a condition with the reason. A client cannot write this object back. */
function brokenView(ctx: Context, kind: Kind, stored: Resource, { message }: ApiError): Resource {
  const bare = kind.sealed.reduce(
    (object, path) => writeAt(object, fieldPath(path), undefined),
    stored as unknown as JsonObject,
  ) as unknown as Resource
  const { conditions = [], ...status } = (bare.status ?? {}) as { readonly conditions?: readonly JsonObject[] }
  const broken = { type: 'Readable', status: 'False', reason: 'SealBroken', message }
  return visible(ctx, kind, { ...bare, status: { ...status, conditions: [...conditions, broken] } })
}

/** Loads an object for deletion, even if it is undecryptable. `sealed`: its encrypted fields are still encrypted. */
export function loadToRemove(
  ctx: Context,
  kind: Kind,
  entry: Entry,
): { readonly old: Resource; readonly sealed: boolean } {
  try {
    return { old: loadToReplace(ctx, kind, entry), sealed: false }
  } catch (error) {
    if (!isUndecryptable(error)) throw error
    return { old: JSON.parse(entry.text.toString()) as Resource, sealed: true }
  }
}
