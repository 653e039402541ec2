// Runs the checks of every write: defaults of the kind, validation, the permission gate, and the admission of the kind.

import type { Admitted, RequestContext } from '../api/admission.ts'
import { type FieldError, invalid, isEnough, permissionsChanged } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'
import { pauseIfLong } from '../api/time-slices.ts'
import type { Context } from './context.ts'
import { checkMetadata, checkMetadataChange, uniqueOwners } from './metadata.ts'
import { redactLastApplied } from './object-codec.ts'
import { checkOwnerChange } from './owner-references.ts'

type Input = {
  readonly kind: Kind
  readonly next: Resource
  readonly old: Resource | undefined
  /** Field errors from decoding, reported together with the others. */
  readonly errors: readonly FieldError[]
  readonly request: RequestContext
}

export const admit = (ctx: Context, input: Input): Promise<Admitted> =>
  withCurrentPermissions(ctx, () => runChecks(ctx, input))

const maxAttempts = 6

/**
 * Long checks pause. If permissions changed meanwhile, the caller is authorized again and the checks run again, so that no
 * write is committed with permissions from before.
 */
export async function withCurrentPermissions<T>(
  { check, caller, permissionVersions }: Pick<Context, 'check' | 'caller' | 'permissionVersions'>,
  run: () => Promise<T>,
): Promise<T> {
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    check?.caller()
    const version = permissionVersions.current()
    const result = await run()
    if (!check) return result
    check.caller() // also notices a key that expired meanwhile
    if (!permissionVersions.isAffected(caller, version)) return result
  }
  throw permissionsChanged()
}

/** Pauses between the checks if they take long. */
async function runChecks(ctx: Context, { kind, next, old, errors, request }: Input): Promise<Admitted> {
  const afterDecoding = pauseIfLong()
  if (afterDecoding) await afterDecoding
  if (isEnough(errors)) throw invalid(kind, next.metadata.name ?? '', errors)
  // Validation of the kind expects an object that matches the schema.
  const shaped = errors.length === 0
  const named = shaped ? ctx.gate.withTeamNames({ kind, next, old, request }) : next
  const tidy = { ...named, metadata: uniqueOwners(named.metadata, request.warn) }
  const prepared = shaped && kind.prepare ? kind.prepare(tidy, old) : tidy
  const all = [
    ...errors,
    ...(kind.stored || kind.hasIdentity ? checkMetadata(kind, prepared.metadata, request.warn) : []),
    ...(old ? checkMetadataChange(prepared.metadata, old.metadata) : []),
    ...(shaped ? (kind.validate?.(prepared, old) ?? []) : []),
  ]
  if (all.length === 0) all.push(...checkOwnerChange(ctx, kind, prepared, old))
  if (all.length) throw invalid(kind, prepared.metadata.name ?? '', all)
  const assigned = kind.assign ? kind.assign(prepared, old, request.caller) : prepared
  const afterValidation = pauseIfLong()
  if (afterValidation) await afterValidation
  const gated = await ctx.gate.admit({ kind, next: assigned, old, request })
  const afterGate = pauseIfLong()
  if (afterGate) await afterGate
  const own = ctx.admissions.get(kind)?.admit
  const admitted: Admitted = own ? await own(gated, old, request) : { object: gated }
  return { ...admitted, object: redactLastApplied(kind, admitted.object) }
}

/** The object with the status that its kind sets in the same commit. `next` has its new generation. */
export function observed(ctx: Context, kind: Kind, next: Resource, old: Resource | undefined): Resource {
  return ctx.admissions.get(kind)?.observe?.(next, old) ?? next
}
