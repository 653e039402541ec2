// Serves the subresources of kinds: a get reads about an object, a create may change it.

import type { SubresourceHandler } from '../api/admission.ts'
import { canonical } from '../api/codec.ts'
import { notFound } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import type { Json, Ref, Resource } from '../api/object.ts'
import { type Document, documentOf, type Watch, type WatchOptions, type WriteOptions } from '../api/resources.ts'
import { withCurrentPermissions } from './admission.ts'
import { commitChange } from './companion-writes.ts'
import { type Context, keyOf, refOf, requestOf } from './context.ts'
import { encodeWrite, load, present, presentStored, visible } from './object-codec.ts'
import { retryConflicts } from './retry-conflicts.ts'

type Found = { readonly name: string; readonly part?: string }

/** Parses the subresource of a path and its optional part: `history/3` is part 3 of history. */
export function findSubresource(kind: Kind, path = ''): Found | undefined {
  const [name = '', part] = path.split('/', 2)
  if (!Object.hasOwn(kind.subresources, name)) return undefined
  return { name, ...(part === undefined ? {} : { part }) }
}

function handlerOf({ admissions }: Context, kind: Kind, name: string): SubresourceHandler {
  const handler = admissions.get(kind)?.subresources?.[name]
  if (!handler) throw new Error(`${kind.kind} declares the subresource ${name}, but its admission does not handle it`)
  return handler
}

export async function readSubresource(ctx: Context, kind: Kind, at: Ref, { name, part }: Found): Promise<Document> {
  const ref = refOf(kind, at)
  const entry = ctx.store.get(keyOf(kind, ref))
  if (!entry) throw notFound(kind, ref.name)
  const { answer } = await handlerOf(ctx, kind, name)(load(ctx, kind, entry), { part }, requestOf(ctx, {}))
  return answer ? documentOf(answer) : present(ctx, kind, entry)
}

/** For kinds without a namespace. */
export function watchSubresource(ctx: Context, kind: Kind, of: NonNullable<WatchOptions['of']>): Watch {
  const ref = refOf(kind, { namespace: '', name: of.name })
  const entry = ctx.store.get(keyOf(kind, ref))
  if (!entry) throw notFound(kind, ref.name)
  const watch = ctx.admissions.get(kind)?.subresourceWatches?.[of.subresource]
  if (!watch)
    throw new Error(`${kind.kind} declares the watch of ${of.subresource}, but its admission does not have it`)
  return watch(load(ctx, kind, entry))
}

/** Runs the handler, stores its changes, and responds. Runs it again after a conflict. */
export async function runSubresource(
  ctx: Context,
  kind: Kind,
  at: Ref,
  path: string,
  body: Json | undefined,
  options: WriteOptions = {},
): Promise<Document> {
  const ref = refOf(kind, at)
  const key = keyOf(kind, ref)
  const request = requestOf(ctx, options)
  const attempt = async () => {
    const entry = ctx.store.get(key)
    const found = findSubresource(kind, path)
    if (!entry || !found) throw notFound(kind, ref.name)
    const old = load(ctx, kind, entry)
    ctx.check?.target?.(old)
    const { object, shown, answer } = await withCurrentPermissions(ctx, async () => {
      const { object: changed, ...rest } = await handlerOf(ctx, kind, found.name)(old, { body }, request)
      const isChange = changed && !rest.answer
      return { ...rest, object: isChange ? await ctx.gate.admit({ kind, next: changed, old, request }) : undefined }
    })
    if (answer) return documentOf(answer)
    if (!object || isUnchanged(object, old)) return present(ctx, kind, entry)
    if (request.dryRun) return documentOf(visible(ctx, kind, object))
    const value = encodeWrite(ctx, kind, object, old)
    const write = { type: 'put', key, value, expect: entry.revision } as const
    const revision = await commitChange(ctx, kind, write, { old, next: object })
    return presentStored(ctx, kind, { object, value, revision }, shown)
  }
  return retryConflicts(ctx, kind, ref, attempt)
}

const isUnchanged = (next: Resource, old: Resource) =>
  canonical(next as unknown as Json) === canonical(old as unknown as Json)
