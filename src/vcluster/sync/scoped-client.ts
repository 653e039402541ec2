// Wraps a client for the syncer: limited to a namespace, with paged lists, or as a dry run.

import { ApiError, expired } from '../../api/errors.ts'
import type { Kind } from '../../api/kind.ts'
import type { Ref } from '../../api/object.ts'
import { type Document, documentOf, type List, type ListOptions, type Resources } from '../../api/resources.ts'

/**
 * Limits lists and watches to one namespace ('' means all), so that permissions in that namespace suffice. Pages lists to limit memory.
 * Lists again after a restore of the server from a backup, when its resource version is lower than the last one seen.
 */
export function scopedTo(resources: Resources, namespace: string): Resources {
  return {
    ...resources,
    list: async (kind, options) => {
      const { items, ...rest } = await listByPages(resources, kind, { ...options, namespace })
      return { ...rest, items: items.map(document => named(document, kind)) }
    },
    watch: (kind, options) =>
      resources.watch(kind, { ...options, namespace }).catch(error => {
        if (error instanceof ApiError && isTooLarge(error)) throw expired(error.message)
        throw error
      }),
  }
}

/** Items of a Kubernetes list have no kind, but watch events have. Adds it, so that both look the same. */
function named(document: Document, { apiVersion, kind }: Kind): Document {
  return document.object.kind ? document : documentOf({ ...document.object, apiVersion, kind })
}

const pageSize = 500

/** All pages at one resource version. Falls back to one large list if the version expires. */
async function listByPages(resources: Resources, kind: Kind, options: ListOptions): Promise<List> {
  const items: Document[] = []
  let next: string | undefined
  try {
    do {
      const page = await resources.list(kind, { ...options, limit: pageSize, ...(next ? { continue: next } : {}) })
      items.push(...page.items)
      if (!page.continue) return { ...page, items }
      next = page.continue
    } while (next)
  } catch (error) {
    if (!next || !(error instanceof ApiError) || error.code !== 410) throw error
  }
  return resources.list(kind, options)
}

const isTooLarge = ({ status }: ApiError) =>
  status.details?.causes?.some(({ reason }) => reason === 'ResourceVersionTooLarge') ?? false

export type DryRunWrite = {
  readonly verb: 'create' | 'update' | 'delete'
  readonly kind: Kind
  readonly ref: Ref
  readonly object?: unknown
}

/** Sends every write as a dry run and reports it. */
export function dryRunClient(resources: Resources, report: (write: DryRunWrite) => void): Resources {
  return {
    ...resources,
    create: async (kind, namespace, object, options) => {
      const { name = '' } = (object as { metadata?: { name?: string } }).metadata ?? {}
      report({ verb: 'create', kind, ref: { namespace, name }, object })
      return resources.create(kind, namespace, object, { ...options, dryRun: true })
    },
    update: async (kind, ref, object, options) => {
      report({ verb: 'update', kind, ref, object })
      return resources.update(kind, ref, object, { ...options, dryRun: true })
    },
    patch: (kind, ref, patch, options) => resources.patch(kind, ref, patch, { ...options, dryRun: true }),
    delete: async (kind, ref, options) => {
      report({ verb: 'delete', kind, ref })
      return resources.delete(kind, ref, { ...options, dryRun: true })
    },
  }
}
