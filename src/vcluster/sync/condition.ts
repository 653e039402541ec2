// Stores why an object is not in sync as an annotation on the virtual object, because Endpoints has no status.

import type { Resource } from '../../api/object.ts'
import { conditionsAnnotation } from './sync-annotations.ts'

/** docs/TROUBLESHOOTING.md explains each of them. */
export const reasons = [
  'PatchFailed',
  'AddressRefused',
  'HostObjectForeign',
  'HostRefused',
  'HostForbidden',
  'NamespaceNotMapped',
  'ReferenceFailed',
] as const
export type Reason = (typeof reasons)[number]
export type SyncFailure = {
  readonly reason: Reason
  /** For the tenant, with names of the virtual cluster. */
  readonly message: string
  /** For the operator, with names of the host; default: `message`. */
  readonly logged?: string
}

/** Sets or removes the condition. Returns the same object if nothing changes. */
export function withCondition<T extends Resource>(object: T, syncFailure: SyncFailure | undefined, now: number): T {
  const { annotations = {} } = object.metadata
  const before = readCondition(object)
  if (!syncFailure) {
    if (annotations[conditionsAnnotation] === undefined) return object
    const { [conditionsAnnotation]: _, ...rest } = annotations
    return { ...object, metadata: { ...object.metadata, annotations: rest } }
  }
  const message = syncFailure.message.slice(0, 1024)
  if (before?.reason === syncFailure.reason && before.message === message) return object
  const lastTransitionTime =
    before?.reason === syncFailure.reason ? before.lastTransitionTime : `${new Date(now).toISOString().slice(0, 19)}Z`
  const condition = { type: 'Synced', status: 'False', reason: syncFailure.reason, message, lastTransitionTime }
  const written = { ...annotations, [conditionsAnnotation]: JSON.stringify([condition]) }
  return { ...object, metadata: { ...object.metadata, annotations: written } }
}

type Condition = { readonly reason?: string; readonly message?: string; readonly lastTransitionTime?: string }

function readCondition({ metadata }: Resource): Condition | undefined {
  try {
    const [condition] = JSON.parse(metadata.annotations?.[conditionsAnnotation] ?? '[]') as Condition[]
    return condition
  } catch {
    return undefined
  }
}

/** Thrown to make the queue retry the object. */
export class SyncFailureError extends Error {
  readonly syncFailure: SyncFailure
  constructor(syncFailure: SyncFailure) {
    super(`${syncFailure.reason}: ${syncFailure.logged ?? syncFailure.message}`)
    this.syncFailure = syncFailure
  }
}
