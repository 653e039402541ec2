// Reads kinds that are not stored, with the selectors of stored kinds.

import { notFound } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import type { Ref, Resource } from '../api/object.ts'
import { type Document, documentOf, type List, type ListOptions } from '../api/resources.ts'
import type { Context } from './context.ts'
import { select } from './selection.ts'

const all = (ctx: Context, kind: Kind): readonly Resource[] => ctx.admissions.get(kind)?.collect?.() ?? []

export function getVirtual(ctx: Context, kind: Kind, { name }: Ref): Document {
  const found = all(ctx, kind).find(object => object.metadata.name === name)
  if (!found) throw notFound(kind, name)
  return documentOf(found)
}

/** Always one page, because such kinds are small. */
export function listVirtual(ctx: Context, kind: Kind, options: ListOptions): List {
  const { matches } = select(ctx, kind, options)
  const revision = ctx.store.revision
  const entryOf = ({ metadata }: Resource) => ({
    key: { bucket: kind.id, namespace: '', name: metadata.name ?? '' },
    revision,
    text: Buffer.alloc(0),
    labels: metadata.labels,
  })
  const items = all(ctx, kind).filter(object => !matches || matches(entryOf(object)))
  return { items: items.map(object => documentOf(object)), resourceVersion: String(revision) }
}

export const isNamespaceInUse = ({ store, kinds }: Pick<Context, 'store' | 'kinds'>, namespace: string): boolean =>
  kinds.some(
    ({ stored, namespaced, id }) =>
      stored && namespaced && store.list({ bucket: id, namespace, limit: 1 }).entries.length > 0,
  )

/** Every namespace with a stored object, found by skipping from one to the next. */
export function namespacesInUse(ctx: Pick<Context, 'store' | 'kinds'>): readonly string[] {
  const found = new Set<string>()
  for (const kind of ctx.kinds) {
    if (!kind.stored || !kind.namespaced) continue
    let after: Ref | undefined
    for (;;) {
      const [entry] = ctx.store.list({ bucket: kind.id, limit: 1, ...(after ? { after } : {}) }).entries
      if (!entry) break
      found.add(entry.key.namespace)
      after = { namespace: entry.key.namespace, name: '~' } // after every DNS name of that namespace
    }
  }
  return [...found]
}
