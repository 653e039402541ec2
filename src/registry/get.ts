// GET of one object: the stored bytes, where the kind has nothing to hide.

import { notFound } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import type { Ref } from '../api/object.ts'
import type { Document } from '../api/resources.ts'
import { type Context, spaceOf } from './context.ts'
import { present } from './object-codec.ts'
import { mustReach, parseVersion } from './resource-version.ts'
import { getCollected } from './virtual-kinds.ts'

export async function get(
  ctx: Context,
  kind: Kind,
  ref: Ref,
  options: { readonly resourceVersion?: string } = {},
): Promise<Document> {
  if (!kind.stored) return getCollected(ctx, kind, ref)
  const asked = parseVersion(options.resourceVersion)
  if (asked !== undefined && asked > ctx.store.revision) await mustReach(ctx.store, asked)
  const entry = ctx.store.get({ bucket: kind.id, namespace: spaceOf(kind, ref.namespace), name: ref.name })
  if (!entry) throw notFound(kind, ref.name)
  return present(ctx, kind, entry)
}
