// Gets one object, as the stored bytes if the kind has no hidden or encrypted fields.

import { notFound } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import type { Ref } from '../api/object.ts'
import type { Document } from '../api/resources.ts'
import { type Context, spaceOf } from './context.ts'
import { present } from './object-codec.ts'
import { parseVersion, waitForRevision } from './resource-version.ts'
import { getVirtual } from './virtual-kinds.ts'

export async function get(
  ctx: Context,
  kind: Kind,
  ref: Ref,
  options: { readonly resourceVersion?: string } = {},
): Promise<Document> {
  if (!kind.stored) return getVirtual(ctx, kind, ref)
  const version = parseVersion(options.resourceVersion)
  if (version !== undefined && version > ctx.store.revision) await waitForRevision(ctx.store, version)
  const entry = ctx.store.get({ bucket: kind.id, namespace: spaceOf(kind, ref.namespace), name: ref.name })
  if (!entry) throw notFound(kind, ref.name)
  return present(ctx, kind, entry)
}
