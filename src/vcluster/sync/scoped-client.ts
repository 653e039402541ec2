// Resources as the syncer wants them: confined to a namespace, or without effect. Wraps whatever it is given.

import { ApiError, expired } from '../../api/errors.ts'
import type { Kind } from '../../api/kind.ts'
import type { Ref } from '../../api/object.ts'
import { type Document, documentOf, type List, type ListOptions, type Resources } from '../../api/resources.ts'

/**
 * Lists and watches see one namespace alone ('' is all), so that rights in that namespace are enough. Lists come page by
 * page: the text of all objects at once would be most of the memory the syncer ever needs. A server that was set back, and knows less than was seen of it already, is listed anew, as one that has forgotten is.
 */
export function within(resources: Resources, namespace: string): Resources {
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

/** In lists of Kubernetes the objects do not say what they are; in watches they do. That is no difference. */
function named(document: Document, { apiVersion, kind }: Kind): Document {
  return document.object.kind ? document : documentOf({ ...document.object, apiVersion, kind })
}

const pageSize = 500

/** All pages of one moment. Where the server has forgotten that moment before the last page, everything at once. */
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

export type Told = {
  readonly verb: 'create' | 'update' | 'delete'
  readonly kind: Kind
  readonly ref: Ref
  readonly object?: unknown
}

/** Every write is put to the server as a dry run, and told. */
export function withoutEffect(resources: Resources, tell: (write: Told) => void): Resources {
  return {
    ...resources,
    create: async (kind, namespace, object, options) => {
      const { name = '' } = (object as { metadata?: { name?: string } }).metadata ?? {}
      tell({ verb: 'create', kind, ref: { namespace, name }, object })
      return resources.create(kind, namespace, object, { ...options, dryRun: true })
    },
    update: async (kind, ref, object, options) => {
      tell({ verb: 'update', kind, ref, object })
      return resources.update(kind, ref, object, { ...options, dryRun: true })
    },
    patch: (kind, ref, patch, options) => resources.patch(kind, ref, patch, { ...options, dryRun: true }),
    delete: async (kind, ref, options) => {
      tell({ verb: 'delete', kind, ref })
      return resources.delete(kind, ref, { ...options, dryRun: true })
    },
  }
}
