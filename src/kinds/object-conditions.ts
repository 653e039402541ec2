// Computes the conditions AccessApplied, RolesResolved, Enabled and Ready of secrets, teams and users (D23, D63).
// Admission sets them in the commit of a write, controllers when something else changes.

import { type Caller, systemCaller } from '../api/caller.ts'
import { canonical } from '../api/encode.ts'
import { type Json, type Resource, timestamp } from '../api/object.ts'
import { sourceOf } from './project-secret-source.ts'
import { localRoles } from './team-cluster-roles.ts'

export type Condition = {
  readonly type: string
  readonly status: string
  readonly severity?: string | undefined
  readonly lastTransitionTime?: string | undefined
  readonly reason?: string | undefined
  readonly message?: string | undefined
}

/** The state of a condition, without its time. */
export type Finding = Omit<Condition, 'lastTransitionTime'> & { readonly status: 'True' | 'False' | 'Unknown' }

type Status = {
  readonly conditions?: readonly Condition[] | undefined
  readonly observedGeneration?: number | undefined
}
type Spec = { readonly access?: readonly unknown[] | undefined }

/** The reason of AccessApplied while the controller has to create, change or remove roles. */
export const accessPending = 'AccessPending'

export const conditionOf = (object: Resource<unknown, unknown>, type: string): Condition | undefined =>
  (object.status as Status | undefined)?.conditions?.find(one => one.type === type)

// A condition that is True needs no message. Most objects have only such conditions, and every write encodes them.
export const accessApplied: Finding = { reason: 'Applied', status: 'True', type: 'AccessApplied' }

export const accessFailed = (message: string): Finding => ({
  type: 'AccessApplied',
  status: 'False',
  severity: 'Error',
  reason: 'ApplyFailed',
  message,
})

const noAccess: Finding = { reason: 'NoEntries', status: 'True', type: 'AccessApplied' }
const resolved: Finding = { reason: 'Resolved', status: 'True', type: 'RolesResolved' }
const ready: Finding = { reason: 'Ready', status: 'True', type: 'Ready' }

const pending: Finding = {
  type: 'AccessApplied',
  status: 'Unknown',
  severity: 'Info',
  reason: accessPending,
  message: 'roles and bindings are being updated',
}

/** A condition is for people, and a team can name many roles. */
const maxNames = 20

/** `missing`: names of cluster roles that do not exist. */
export function rolesResolved(missing: readonly string[]): Finding {
  if (missing.length === 0) return resolved
  const type = 'RolesResolved'
  const others = missing.length > maxNames ? ` and ${missing.length - maxNames} more` : ''
  const message = `missing cluster roles: ${missing.slice(0, maxNames).join(', ')}${others}`
  return { type, status: 'False', severity: 'Warning', reason: 'RolesMissing', message }
}

/** For a User (D63). */
export const userEnabled = (isDisabled: boolean): Finding =>
  isDisabled
    ? {
        type: 'Enabled',
        status: 'False',
        severity: 'Info',
        reason: 'Disabled',
        message: 'the keys, sessions and tokens of the user are invalid',
      }
    : { reason: 'Enabled', status: 'True', type: 'Enabled' }

/** Everything that roles and bindings are generated from. */
export const generatedFrom = (spec: unknown): string => {
  const { access = [] } = (spec ?? {}) as Spec
  const roles = localRoles(spec)
  return access.length + roles.length === 0 ? '' : canonical([access, roles] as unknown as Json)
}

/** The condition about connected clusters after a write: none, or to be found out after a change. */
export function withRemote<O extends Resource<unknown, unknown>>(
  object: O,
  old: O | undefined,
  {
    type,
    isWanted,
    now,
  }: { readonly type: 'Delivered' | 'ClusterRolesBound'; readonly isWanted: boolean; readonly now: number },
): O {
  const status = (object.status ?? {}) as Status
  if (!isWanted) {
    if (!conditionOf(object, type)) return object
    const rest = (status.conditions ?? none).filter(one => one.type !== type)
    return withConditions({ ...object, status: { ...status, conditions: rest } }, [], now)
  }
  if (conditionOf(object, type) && old?.metadata.generation === object.metadata.generation) return object
  return withConditions(object, [remotePending(type)], now)
}

/** Agents have not reported about the newest state. */
export const remotePending = (type: string): Finding => ({
  type,
  status: 'Unknown',
  severity: 'Info',
  reason: 'Pending',
  message: 'the agents of the clusters have not reported yet',
})

/**
 * The object with its conditions after a write. `old` is undefined for a new object, and the object itself for one that an
 * earlier version stored without conditions.
 */
export function withObserved<O extends Resource<unknown, unknown>>(next: O, old: O | undefined, write: Write): O {
  const { now, missingRoles } = write
  const findings = [
    ...(accessAfter(next, old) ?? []),
    ...(missingRoles === undefined ? [] : [rolesResolved(missingRoles)]),
  ]
  return withConditions(next, findings, now)
}

type Write = {
  readonly now: number
  /** For teams only. */
  readonly missingRoles?: readonly string[] | undefined
}

/** undefined: as before. */
function accessAfter(
  next: Resource<unknown, unknown>,
  old: Resource<unknown, unknown> | undefined,
): readonly Finding[] | undefined {
  const now = generatedFrom(next.spec)
  const isUnchanged = now === (old ? generatedFrom(old.spec) : '')
  if (!isUnchanged) return [pending]
  if (conditionOf(next, 'AccessApplied')) return undefined
  return [now === '' ? noAccess : pending]
}

/** Sets conditions, and Ready with them. Conditions with the same status keep their time. */
export function withConditions<O extends Resource<unknown, unknown>>(
  object: O,
  findings: readonly Finding[],
  now: number,
): O {
  const status = (object.status ?? {}) as Status
  let conditions = findings.reduce((all, one) => withCondition(all, one, now), status.conditions ?? none)
  conditions = withCondition(conditions, readiness(object, conditions), now)
  const observedGeneration = object.metadata.generation ?? status.observedGeneration
  if (conditions === status.conditions && observedGeneration === status.observedGeneration) return object
  return { ...object, status: { ...status, conditions, observedGeneration } }
}

const none: readonly Condition[] = []

/** The list itself if the condition is the same, so that an unchanged list is recognized quickly. */
function withCondition(conditions: readonly Condition[], finding: Finding, now: number): readonly Condition[] {
  const index = conditions.findIndex(one => one.type === finding.type)
  const before = conditions[index]
  if (before && isSame(before, finding)) return conditions
  const lastTransitionTime = before?.status === finding.status ? before.lastTransitionTime : undefined
  const next = { lastTransitionTime: lastTransitionTime ?? timestamp(now), ...finding }
  return before ? conditions.with(index, next) : [...conditions, next]
}

const isSame = (condition: Condition, finding: Finding): boolean =>
  condition.status === finding.status &&
  condition.reason === finding.reason &&
  condition.message === finding.message &&
  condition.severity === finding.severity &&
  condition.lastTransitionTime !== undefined

/** An object is ready if its other conditions are True. */
function readiness(object: Resource<unknown, unknown>, conditions: readonly Condition[]): Finding {
  const type = 'Ready'
  const isCopy = sourceOf(object as Resource) !== undefined
  const needed = conditions.filter(one => needs.has(one.type) || (isCopy && one.type === 'Synced'))
  const failed = needed.find(({ status }) => status === 'False') ?? needed.find(({ status }) => status !== 'True')
  if (failed) {
    const { status, severity = 'Error', reason, message } = failed
    return { type, status: status === 'False' ? 'False' : 'Unknown', severity, reason, message }
  }
  if (isCopy && !needed.some(one => one.type === 'Synced')) {
    const message = 'the data is being copied from the SharedSecret'
    return { type, status: 'Unknown', severity: 'Info', reason: 'SyncPending', message }
  }
  return ready
}

const needs = new Set([
  'AccessApplied',
  'RolesResolved',
  'Enabled',
  'Delivered',
  'ClusterRolesBound',
  'Connected',
  'Applied',
  'CleanedUp',
])

const serverTypes = new Set([...needs, 'Ready', 'Synced'])
const isOfServer = ({ type }: Condition) => serverTypes.has(type)

/** Only the server writes its conditions. A write of /status by a client keeps them as stored, and changes others. */
export function keepConditions<O extends Resource<unknown, unknown>>(next: O, old: O | undefined, caller: Caller): O {
  const [sent, stored] = [next.status, old?.status] as [Status | undefined, Status | undefined]
  if (caller === systemCaller || sent === stored) return next
  const kept = stored?.conditions?.filter(isOfServer) ?? none
  const conditions = [...kept, ...(sent?.conditions ?? none).filter(one => !isOfServer(one))]
  const { conditions: _, observedGeneration: __, ...others } = sent ?? {}
  const observed = stored?.observedGeneration
  const status = {
    ...others,
    ...(conditions.length ? { conditions } : {}),
    ...(observed === undefined ? {} : { observedGeneration: observed }),
  }
  return { ...next, status }
}
