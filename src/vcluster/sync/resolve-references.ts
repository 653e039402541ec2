// Syncs the objects that an Endpoints references, and reports those that have no target on the host.

import type { Ref } from '../../api/object.ts'
import type { ReferencedObject } from '../patch/reference.ts'
import { referenceFailure } from './apply-write.ts'
import { type SyncFailure, SyncFailureError, withUnresolved } from './condition.ts'
import type { Events } from './events.ts'
import type { SyncedObject } from './kinds.ts'
import type { Plan } from './plan.ts'

/** Syncs one object. Returns why there is no target, as a message for the tenant. Throws SyncFailureError if it is not allowed. */
export type SyncReference = (referenced: ReferencedObject) => Promise<string | undefined>

export type SyncedReferences = {
  /** Message for the tenant about all unresolved references. */
  readonly unresolved: string | undefined
  /** The first failure. */
  readonly error: unknown
}

/** Syncs all of them, also after a failure, so that the condition names every unresolved one. */
export async function syncReferences(
  { referencedObjects = [], unresolvedReferences = [] }: Plan,
  syncReference: SyncReference | undefined,
): Promise<SyncedReferences> {
  const unresolved = new Set(unresolvedReferences)
  let error: unknown
  for (const referenced of distinct(referencedObjects))
    try {
      const why = await syncReference?.(referenced)
      if (why !== undefined) unresolved.add(why)
    } catch (cause) {
      const syncFailure = cause instanceof SyncFailureError ? cause.syncFailure : referenceFailure(cause, referenced)
      if (syncFailure) unresolved.add(syncFailure.message)
      error ??= syncFailure ? new SyncFailureError(syncFailure) : cause
    }
  return { unresolved: unresolved.size ? [...unresolved].join('; ') : undefined, error }
}

const distinct = (all: readonly ReferencedObject[]): Iterable<ReferencedObject> =>
  new Map(all.map(one => [`${one.apiVersion}/${one.kind}/${one.hostNamespace}/${one.hostName}`, one])).values()

export type ReferenceState = { readonly current: SyncedObject | undefined; readonly now: number }

/** Adds the condition about references to the plan, if the object is synced. */
export function withReferences(plan: Plan, { unresolved }: SyncedReferences, { current, now }: ReferenceState): Plan {
  if (plan.state !== 'synced' || !current || plan.virtual?.verb === 'delete') return plan
  const object = withUnresolved(plan.virtual?.object ?? current, unresolved, now)
  return object === current ? plan : { ...plan, virtual: { verb: 'update', object } }
}

export type UnresolvedReportOptions = {
  /** Absent: nothing is written to the virtual cluster. */
  readonly events: Events | undefined
  readonly log: (ref: Ref, syncFailure: SyncFailure) => void
}

type Unresolved = { readonly ref: Ref; readonly uid: string | undefined; readonly message: string | undefined }

/** Logs only changes, because references are checked again and again. */
export function openUnresolvedReport({ events, log }: UnresolvedReportOptions): (one: Unresolved) => Promise<void> {
  const known = new Map<string, string>()
  return async ({ ref, uid, message }) => {
    const name = `${ref.namespace}/${ref.name}`
    if (message === undefined) return void known.delete(name)
    const reason = 'UnresolvedReferences'
    if (known.get(name) !== message) log(ref, { reason, message })
    known.set(name, message)
    await events?.record({ ref, uid }, reason, message)
  }
}
