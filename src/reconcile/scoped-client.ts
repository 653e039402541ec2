// Wraps a client for an informer: limited to a namespace or to labels, with paged lists.

import { ApiError, expired } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import { type Document, documentOf, type List, type ListOptions, type Resources } from '../api/resources.ts'

/**
 * Limits lists and watches to one namespace ('' means all), so that permissions in that namespace suffice, and to labels. Pages lists
 * to limit memory.
 * Lists again after a restore of the server from a backup, when its resource version is lower than the last one seen.
 */
export function scopedTo(resources: Resources, namespace: string, labelSelector?: string): Resources {
  const scope = { namespace, ...(labelSelector === undefined ? {} : { labelSelector }) }
  return {
    ...resources,
    list: async (kind, options) => {
      const { items, ...rest } = await listByPages(resources, kind, { ...options, ...scope })
      return { ...rest, items: items.map(document => named(document, kind)) }
    },
    watch: (kind, options) =>
      resources.watch(kind, { ...options, ...scope }).catch(error => {
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
