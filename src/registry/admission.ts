// What every write passes, whatever its verb: the kind's prepare, all checks at once, the gate for power, the kind's admit.

import { type FieldError, invalid, isEnough } from '../api/errors.ts'
import type { Kind, Shown, Tools } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'
import type { Context } from './context.ts'
import { checkMetadata, checkMetadataChange, uniqueOwners } from './metadata.ts'
import { redactLastApplied } from './object-codec.ts'
import { checkOwnerChange } from './owner-references.ts'

type Input = {
  readonly kind: Kind
  readonly next: Resource
  readonly old: Resource | undefined
  /** Field errors that receiving found; told together with the rest. */
  readonly errors: readonly FieldError[]
  readonly tools: Tools
}

/** What may be stored. `abandon` is called if it is not stored after all. */
export type Admitted = {
  readonly object: Resource
  readonly shown?: Shown | undefined
  readonly abandon?: (() => void) | undefined
}

export async function admit(ctx: Context, { kind, next, old, errors, tools }: Input): Promise<Admitted> {
  if (isEnough(errors)) throw invalid(kind, next.metadata.name ?? '', errors)
  // Rules of the kind assume a value of the schema's shape.
  const shaped = errors.length === 0
  const tidy = { ...next, metadata: uniqueOwners(next.metadata, tools.warn) }
  const prepared = shaped && kind.prepare ? kind.prepare(tidy, old) : tidy
  const all = [
    ...errors,
    ...(kind.stored ? checkMetadata(kind, prepared.metadata, tools.warn) : []),
    ...(old ? checkMetadataChange(prepared.metadata, old.metadata) : []),
    ...(shaped ? (kind.validate?.(prepared, old) ?? []) : []),
  ]
  if (all.length === 0) all.push(...(await checkOwnerChange(ctx, kind, prepared, old, tools)))
  if (all.length) throw invalid(kind, prepared.metadata.name ?? '', all)
  const assigned = kind.assign ? kind.assign(prepared, old, tools.caller) : prepared
  const gated = await ctx.gate.admit({ kind, next: assigned, old, tools })
  const admitted: Admitted = kind.admit ? await kind.admit(gated, old, tools) : { object: gated }
  return { ...admitted, object: redactLastApplied(kind, admitted.object) }
}
