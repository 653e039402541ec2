// Wraps a client for the syncer: every write is a dry run.

import type { Kind } from '../../api/kind.ts'
import type { Ref } from '../../api/object.ts'
import type { Resources } from '../../api/resources.ts'

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
