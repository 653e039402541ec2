// Patches an object with JSON Patch or merge patch, applied to the fields that the caller can see (D5).

import { badRequest, patchFailed } from '../api/errors.ts'
import { type FieldPath, touches } from '../api/field-path.ts'
import { applyJsonPatch, PatchError, type PatchOptions, unknownMembers } from '../api/json-patch.ts'
import type { Kind } from '../api/kind.ts'
import { applyMergePatch } from '../api/merge-patch.ts'
import { isObject, type Json, type Ref } from '../api/object.ts'
import type { Document, PatchBody, WriteOptions } from '../api/resources.ts'
import { applyStrategicMerge } from '../api/strategic-merge.ts'
import { withoutReplaced } from './alternatives.ts'
import { apply } from './apply.ts'
import { type Context, refOf } from './context.ts'
import { decodeObject, strictPatchError } from './decode.ts'
import { visible } from './object-codec.ts'
import { checkNamedByPath } from './request-path.ts'
import { maySee, secretFields, setsFields, writtenByPatch } from './secret-fields.ts'
import { storedPath } from './text-forms.ts'
import { rewrite } from './update.ts'

export async function patch(
  ctx: Context,
  kind: Kind,
  at: Ref,
  body: PatchBody,
  options: WriteOptions = {},
): Promise<Document & { created?: boolean }> {
  const ref = refOf(kind, at)
  if (body.type === 'apply') return apply(ctx, kind, ref, body, options)
  checkBody(kind, ref, body, options)
  return rewrite(ctx, kind, ref, options, old => {
    const secret = secretFields(ctx, kind, ref)
    const seen = maySee(ctx, kind, ref)
    const guard = guardOf(seen ? secret : [everything])
    const before = visible(ctx, kind, old) as unknown as Json
    const patched = withoutReplaced(kind, run(before, body, guard), body)
    const received = decodeObject(kind, withoutOldStatus(kind, patched, before, options), options, 'patch')
    checkNamedByPath(kind, ref, received.object.metadata)
    // An unchanged resourceVersion is not a precondition; a changed one is.
    const isPinned = received.object.metadata.resourceVersion !== old.metadata.resourceVersion
    const written = writtenByPatch(secret, body).map(path => storedPath(kind, path))
    return { ...received, isPinned, written, callerCannotGet: !seen && setsFields(body) }
  })
}

function checkBody(kind: Kind, ref: Ref, body: PatchBody, options: WriteOptions): void {
  if ((body.type === 'merge' || body.type === 'strategic') && !isObject(body.body))
    throw badRequest('error decoding patch: a merge patch is a JSON object')
  if (body.type !== 'json') return
  if (!Array.isArray(body.body)) throw badRequest('error decoding patch: a JSON Patch is an array of operations')
  const unknown = options.fieldValidation === 'Ignore' ? [] : unknownMembers(body.body)
  if (unknown.length && options.fieldValidation === 'Strict') throw strictPatchError(kind, ref.name, unknown)
  for (const member of unknown) options.warn?.(`json patch unknown field "${member}"`)
}

/** The stored status stays as it is, so that it need not be decoded. */
function withoutOldStatus(kind: Kind, patched: Json, before: Json, { subresource }: WriteOptions): Json {
  if (!kind.statusSubresource || subresource || !isObject(patched) || !isObject(before)) return patched
  const { status, ...rest } = patched
  return status !== undefined && status === before['status'] ? rest : patched
}

type PatchGuard = NonNullable<PatchOptions['guard']>

/** The path of the whole object. */
const everything: FieldPath = []

/** copy, move and test could reveal fields that the caller may not see (D5). */
function guardOf(secret: readonly FieldPath[]): PatchGuard | undefined {
  if (secret.length === 0) return undefined
  return (op, pointer, refuse) => {
    if ((op === 'copy' || op === 'move' || op === 'test') && secret.some(path => touches(path, pointer)))
      refuse(`${op} may not touch a hidden field or a parent of one`)
  }
}

function run(document: Json, { type, body }: PatchBody, guard: PatchGuard | undefined): Json {
  if (type === 'json') return runJsonPatch(document, body, guard)
  return type === 'strategic' ? applyStrategicMerge(document, body) : applyMergePatch(document, body)
}

function runJsonPatch(document: Json, operations: Json, guard: PatchGuard | undefined): Json {
  try {
    return applyJsonPatch(document, operations, guard ? { guard } : {})
  } catch (error) {
    if (!(error instanceof PatchError)) throw error
    if (error.kind === 'malformed') throw badRequest(`error decoding patch: ${error.message}`)
    throw patchFailed([
      { reason: 'FieldValueInvalid', field: error.pointer, message: `operation ${error.index}: ${error.problem}` },
    ])
  }
}
