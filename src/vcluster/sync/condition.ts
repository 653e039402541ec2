// Stores why an object is not in sync as an annotation on the virtual object, because Endpoints has no status.

import { isObject, type Resource } from '../../api/object.ts'
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
  'UnresolvedReferences',
] as const
export type Reason = (typeof reasons)[number]
export type SyncFailure = {
  readonly reason: Reason
  /** For the tenant, with names of the virtual cluster. */
  readonly message: string
  /** For the operator, with names of the host; default: `message`. */
  readonly logged?: string
}

const types = ['Synced', 'ReferencesResolved'] as const
type Condition = {
  readonly type: (typeof types)[number]
  readonly status: 'False'
  readonly reason: string
  readonly message: string
  readonly lastTransitionTime: string
}

/** Sets or removes the condition `Synced`. Returns the same object if nothing changes. */
export const withCondition = <T extends Resource>(object: T, syncFailure: SyncFailure | undefined, now: number): T =>
  withOne(object, { type: 'Synced', failure: syncFailure, now })

/** Sets the condition `ReferencesResolved` to a message about all unresolved references, or removes it. */
export const withUnresolved = <T extends Resource>(object: T, message: string | undefined, now: number): T =>
  withOne(object, {
    type: 'ReferencesResolved',
    failure: message === undefined ? undefined : { reason: 'UnresolvedReferences', message },
    now,
  })

/** Removes all conditions. */
export const withoutConditions = <T extends Resource>(object: T): T => write(object, [])

type Change = {
  readonly type: Condition['type']
  readonly failure: SyncFailure | undefined
  readonly now: number
}

function withOne<T extends Resource>(object: T, { type, failure, now }: Change): T {
  const before = readConditions(object)
  const old = before.find(one => one.type === type)
  const others = before.filter(one => one.type !== type)
  if (!failure) return write(object, others)
  const { reason } = failure
  const lastTransitionTime =
    old?.reason === reason ? old.lastTransitionTime : `${new Date(now).toISOString().slice(0, 19)}Z`
  const message = failure.message.slice(0, 1024)
  return write(object, [...others, { type, status: 'False', reason, message, lastTransitionTime }])
}

function write<T extends Resource>(object: T, conditions: readonly Condition[]): T {
  const { annotations = {} } = object.metadata
  const { [conditionsAnnotation]: before, ...rest } = annotations
  const sorted = types.flatMap(type => conditions.filter(one => one.type === type))
  const text = sorted.length ? JSON.stringify(sorted) : undefined
  if (text === before) return object
  const written = text === undefined ? rest : { ...annotations, [conditionsAnnotation]: text }
  return { ...object, metadata: { ...object.metadata, annotations: written } }
}

/** Ignores values that the syncer did not write, because tenants can edit the annotation. */
function readConditions({ metadata }: Resource): readonly Condition[] {
  try {
    const found: unknown = JSON.parse(metadata.annotations?.[conditionsAnnotation] ?? '[]')
    return Array.isArray(found) ? found.filter(isCondition) : []
  } catch {
    return []
  }
}

const isCondition = (value: unknown): value is Condition =>
  isObject(value) &&
  types.some(type => type === value['type']) &&
  ['reason', 'message', 'lastTransitionTime'].every(key => typeof value[key] === 'string')

/** Thrown to make the queue retry the object. */
export class SyncFailureError extends Error {
  readonly syncFailure: SyncFailure
  constructor(syncFailure: SyncFailure) {
    super(`${syncFailure.reason}: ${syncFailure.logged ?? syncFailure.message}`)
    this.syncFailure = syncFailure
  }
}
