// Why an object is not in sync, kept as an annotation on the virtual one: Endpoints has no status. Pure.

import type { Resource } from '../../api/object.ts'
import { conditionsMark } from './sync-annotations.ts'

/** Each has its paragraph in docs/TROUBLESHOOTING.md. */
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
export type Trouble = {
  readonly reason: Reason
  /** For the tenant, in the names of the virtual cluster. */
  readonly message: string
  /** The same for whoever runs the syncer, in the names of the host; absent: there is no difference. */
  readonly logged?: string
}

/** The object with the condition, or without one; the very same where nothing changes. */
export function withCondition<T extends Resource>(object: T, trouble: Trouble | undefined, now: number): T {
  const { annotations = {} } = object.metadata
  const before = readCondition(object)
  if (!trouble) {
    if (annotations[conditionsMark] === undefined) return object
    const { [conditionsMark]: _, ...rest } = annotations
    return { ...object, metadata: { ...object.metadata, annotations: rest } }
  }
  const message = trouble.message.slice(0, 1024)
  if (before?.reason === trouble.reason && before.message === message) return object
  const lastTransitionTime =
    before?.reason === trouble.reason ? before.lastTransitionTime : `${new Date(now).toISOString().slice(0, 19)}Z`
  const condition = { type: 'Synced', status: 'False', reason: trouble.reason, message, lastTransitionTime }
  const written = { ...annotations, [conditionsMark]: JSON.stringify([condition]) }
  return { ...object, metadata: { ...object.metadata, annotations: written } }
}

type Condition = { readonly reason?: string; readonly message?: string; readonly lastTransitionTime?: string }

function readCondition({ metadata }: Resource): Condition | undefined {
  try {
    const [condition] = JSON.parse(metadata.annotations?.[conditionsMark] ?? '[]') as Condition[]
    return condition
  } catch {
    return undefined
  }
}

/** A trouble as an error: the name is tried again later. */
export class TroubleError extends Error {
  readonly trouble: Trouble
  constructor(trouble: Trouble) {
    super(`${trouble.reason}: ${trouble.logged ?? trouble.message}`)
    this.trouble = trouble
  }
}
