// Updates an object or its status (PUT), and implements the read-modify-write of update, patch and apply.

import type { Admitted, RequestContext } from '../api/admission.ts'
import { ApiError, conflict, invalidValue, notFound } from '../api/errors.ts'
import type { FieldPath } from '../api/field-path.ts'
import { withoutFields } from '../api/field-path.ts'
import type { Kind } from '../api/kind.ts'
import { wholeSchema } from '../api/metadata-schema.ts'
import {
  type Json,
  type JsonObject,
  type ManagedFieldsEntry,
  type Ref,
  type Resource,
  timestamp,
} from '../api/object.ts'
import { type Document, documentOf, type WriteOptions } from '../api/resources.ts'
import { isEqual } from '../smd/compare.ts'
import { isSameApartFromTimes, trackUpdate } from '../smd/update.ts'
import type { Op } from '../storage/store.ts'
import { admit, observed } from './admission.ts'
import { commitChange } from './companion-writes.ts'
import { type Context, keyOf, refOf, requestOf } from './context.ts'
import { type DecodedObject, decodeObject } from './decode.ts'
import { limitApplied, limitSent } from './managed-fields-limit.ts'
import { nextMetadata } from './metadata.ts'
import { carryOver, encodeWrite, loadToReplace, present, presentStored, visible } from './object-codec.ts'
import { checkNamedByPath } from './request-path.ts'
import { retryConflicts } from './retry-conflicts.ts'
import { isNeverShown, maySee, secretFields, withStoredSecrets, writtenBy } from './secret-fields.ts'
import { translate } from './store-errors.ts'

export async function update(
  ctx: Context,
  kind: Kind,
  at: Ref,
  sent: Json,
  options: WriteOptions = {},
): Promise<Document> {
  const received = decodeObject(kind, sent, options)
  const ref = refOf(kind, at)
  checkNamedByPath(kind, ref, received.object.metadata)
  return rewrite(ctx, kind, ref, options, old => {
    const { resourceVersion, uid } = received.object.metadata
    if (!resourceVersion || resourceVersion === '0') throw versionMissing(kind, ref.name)
    if (uid !== undefined && uid !== old.metadata.uid)
      throw conflict(
        kind,
        ref.name,
        `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${old.metadata.uid}`,
      )
    const written = writtenBy(secretFields(ctx, kind, ref), received.object as unknown as Json)
    return { ...received, written, callerCannotGet: !maySee(ctx, kind, ref) }
  })
}

/** Upstream reports this error with the plural instead of the kind. */
function versionMissing(kind: Kind, name: string): ApiError {
  const error = invalidValue('metadata.resourceVersion', 0, 'must be specified for an update')
  return new ApiError(422, 'Invalid', `${kind.id} "${name}" is invalid: ${error.field}: ${error.message}`, {
    details: { name, group: kind.group, kind: kind.plural, causes: [error] },
  })
}

/**
 * Computes the requested object from the stored one. Its resourceVersion, if set, is a precondition. Runs again after a
 * conflict, with the permissions of that moment.
 */
export type Change = (old: Resource) => DecodedObject & {
  readonly managedFields?: readonly ManagedFieldsEntry[]
  /** False: the resourceVersion comes from the stored object and is not a precondition. */
  readonly isPinned?: boolean
  /** Secret fields that the request sets. */
  readonly written: readonly FieldPath[]
  /** The caller may not get the object, so the response must not reveal whether anything changed (D6). */
  readonly callerCannotGet?: boolean
}

/** Reads, changes, checks and commits. Retries after a conflict unless the client set a resourceVersion. */
export async function rewrite(
  ctx: Context,
  kind: Kind,
  ref: Ref,
  options: WriteOptions,
  change: Change,
): Promise<Document> {
  const request = requestOf(ctx, options)
  const key = keyOf(kind, ref)
  const attempt = async () => {
    ctx.check?.caller()
    const entry = ctx.store.get(key)
    if (!entry) throw notFound(kind, ref.name)
    const old = loadToReplace(ctx, kind, entry)
    ctx.check?.target?.(old)
    const requested = change(old)
    const pinned = requested.isPinned === false ? undefined : requested.object.metadata.resourceVersion
    if (pinned && pinned !== String(entry.revision)) throw conflict(kind, ref.name)
    const settled = await settle(ctx, kind, old, requested, request, options)
    const { object: next, companions: more, preconditions, shown } = settled
    const seen = request.dryRun ? withStoredSecrets(kind, next, old) : next
    if (request.dryRun) encodeWrite(ctx, kind, next, old) // rejects an object that is too large
    if (isSameApartFromTimes(old, seen))
      return shown ? documentOf(shown(visible(ctx, kind, old))) : present(ctx, kind, entry)
    try {
      if (request.dryRun) return documentOf(visible(ctx, kind, seen))
      const value = encodeWrite(ctx, kind, next, old)
      const gone = isGone(next, ctx.now())
      const expect = entry.revision
      const write: Op = gone ? { type: 'delete', key, expect } : { type: 'put', key, value, expect }
      const revision = await commitChange(ctx, kind, write, {
        old,
        next: gone ? undefined : next,
        more,
        preconditions,
      })
      return presentStored(ctx, kind, { object: next, value, revision }, shown)
    } catch (error) {
      throw pinned ? translate(error, kind, ref.name) : error
    }
  }
  return retryConflicts(ctx, kind, ref, attempt)
}

/** Computes the object to store. The main resource keeps its status; /status changes nothing else. */
async function settle(
  ctx: Context,
  kind: Kind,
  old: Resource,
  requested: ReturnType<Change>,
  request: RequestContext,
  options: WriteOptions,
): Promise<Admitted> {
  const ofStatus = options.subresource === 'status'
  if (requested.managedFields) limitApplied(kind, old.metadata, requested.managedFields)
  else if (!ofStatus) limitSent(kind, old.metadata, requested.object.metadata.managedFields)
  const merged = ofStatus
    ? withStatusOf(old, requested.object)
    : carryOver(
        kind,
        withStatusOf({ ...requested.object, metadata: nextMetadata(requested.object.metadata, old.metadata) }, old),
        old,
      )
  const written = ofStatus ? [] : requested.written
  const admitted = await admit(ctx, {
    kind,
    next: merged,
    old,
    errors: requested.errors,
    request: { ...request, written: written.map(path => path.join('.')) },
  })
  const managedFields =
    requested.managedFields ??
    trackUpdate({
      schema: wholeSchema(kind),
      before: withoutFields(old as unknown as JsonObject, written) as unknown as Resource,
      after: withSentFields(admitted.object, requested.object),
      manager: options.fieldManager ?? 'unknown',
      subresource: options.subresource ?? '',
      apiVersion: kind.apiVersion,
      now: timestamp(ctx.now()),
      resetStatus: true,
    })
  const { dryRun } = request
  const next = withFields(admitted.object, managedFields)
  const changed = dryRun ? written.filter(path => !isNeverShown(kind, path)) : written
  const isSame =
    changed.length === 0 &&
    !(requested.callerCannotGet && !ofStatus) &&
    isSameIntent(dryRun ? withStoredSecrets(kind, next, old) : next, old)
  const generation = (old.metadata.generation ?? 0) + (isSame ? 0 : 1)
  const object = { ...next, metadata: { ...next.metadata, generation } }
  // Without it, a diff shows only the differences that the client asked for.
  const isObserved = !ofStatus && !dryRun
  return { ...admitted, object: isObserved ? observed(ctx, kind, object, old) : object }
}

function withStatusOf(object: Resource, from: Resource): Resource {
  const { status: _, ...rest } = object
  return from.status === undefined ? rest : { ...rest, status: from.status }
}

/** Tracking uses the entries as sent. An empty list resets them; an absent one keeps them. */
function withSentFields(object: Resource, { metadata: { managedFields } }: Resource): Resource {
  const { managedFields: _, ...metadata } = object.metadata
  return { ...object, metadata: managedFields ? { ...metadata, managedFields } : metadata }
}

function withFields(object: Resource, managedFields: readonly ManagedFieldsEntry[] | undefined): Resource {
  const { managedFields: _, ...metadata } = object.metadata
  return { ...object, metadata: managedFields?.length ? { ...metadata, managedFields } : metadata }
}

/** Everything except metadata and status is desired state. */
function isSameIntent(next: Resource, old: Resource): boolean {
  const intent = ({ metadata: _, status: __, ...rest }: Resource) => rest as unknown as Json
  return isEqual(intent(next), intent(old))
}

/** Whether a deleted object can go: the grace period is over and no finalizer is left (SPEC §3). */
export function isGone(object: Resource, now: number): boolean {
  const { deletionTimestamp, finalizers } = object.metadata
  return deletionTimestamp !== undefined && !finalizers?.length && Date.parse(deletionTimestamp) <= now
}
