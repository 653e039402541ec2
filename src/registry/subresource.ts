// Subresources that a kind defines itself: read ones answer something about an object, the others may change it.

import { canonical } from '../api/codec.ts'
import { notFound } from '../api/errors.ts'
import type { Kind, Subresource } from '../api/kind.ts'
import type { Json, Ref, Resource } from '../api/object.ts'
import { type Document, documentOf, type WriteOptions } from '../api/resources.ts'
import { commitChange } from './companion-writes.ts'
import { type Context, keyOf, refOf } from './context.ts'
import { encodeWrite, load, present, presentStored, visible } from './object-codec.ts'
import { isConflict, translate } from './store-errors.ts'

/** The subresource that a kind has under this name, and the part of it that is meant: `history/3` is part 3 of history. */
export function findSubresource(
  kind: Kind,
  path = '',
): { readonly own: Subresource; readonly part?: string } | undefined {
  if (path === '') return undefined
  const [name = '', part] = path.split('/', 2)
  const own = Object.hasOwn(kind.subresources, name) ? kind.subresources[name] : undefined
  return own && { own, ...(part === undefined ? {} : { part }) }
}

type Found = NonNullable<ReturnType<typeof findSubresource>>

export async function readSubresource(ctx: Context, kind: Kind, at: Ref, { own, part }: Found): Promise<Document> {
  const ref = refOf(kind, at)
  const entry = ctx.store.get(keyOf(kind, ref))
  if (!entry) throw notFound(kind, ref.name)
  const tools = ctx.tools({ dryRun: false, warn: () => {} })
  const { answer } = await own.run(load(ctx, kind, entry), { part }, tools)
  return answer ? documentOf(answer) : present(ctx, kind, entry)
}

/** Runs, stores what changed, and answers; a lost race is run again. */
export async function runSubresource(
  ctx: Context,
  kind: Kind,
  at: Ref,
  name: string,
  body: Json | undefined,
  options: WriteOptions = {},
): Promise<Document> {
  const ref = refOf(kind, at)
  const key = keyOf(kind, ref)
  const tools = ctx.tools({ dryRun: options.dryRun ?? false, warn: options.warn ?? (() => {}) })
  for (let attempt = 0; ; attempt++) {
    const entry = ctx.store.get(key)
    const found = findSubresource(kind, name)
    if (!entry || !found) throw notFound(kind, ref.name)
    const old = load(ctx, kind, entry)
    ctx.checkTarget?.(old)
    const { object: changed, shown, answer } = await found.own.run(old, { body }, tools)
    if (answer) return documentOf(answer)
    const object = changed && (await ctx.gate.admit({ kind, next: changed, old, tools }))
    if (!object || isUnchanged(object, old)) return present(ctx, kind, entry)
    if (tools.dryRun) return documentOf(visible(ctx, kind, object))
    const value = encodeWrite(ctx, kind, object, old)
    try {
      const write = { type: 'put', key, value, expect: entry.revision } as const
      const revision = await commitChange(ctx, kind, write, { old, next: object, tools })
      return presentStored(ctx, kind, { object, value, revision }, shown)
    } catch (error) {
      if (!isConflict(error) || attempt >= 5) throw translate(error, kind, ref.name)
    }
  }
}

const isUnchanged = (next: Resource, old: Resource) =>
  canonical(next as unknown as Json) === canonical(old as unknown as Json)
