// Which changes of keys and teams take direct-cluster tokens their ground (D33). The kinds store a revocation in the same commit.

import type { Beside, Tools } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'
import { revocation } from './token-revocation.ts'

type KeySpec = {
  readonly disabled?: boolean | undefined
  readonly groups?: readonly string[] | undefined
  readonly scope?: unknown
  readonly ttl?: number | undefined
}
type KeyStatus = { readonly digest?: string | undefined; readonly previous?: unknown }
type Key = Resource<KeySpec, KeyStatus>

export function revokedByKey(old: Key, next: Key | undefined, tools: Tools): readonly Beside[] {
  const reason = whyKey(old, next, tools)
  return reason === undefined ? [] : revocation({ keyUID: old.metadata.uid ?? '' }, reason, tools)
}

function whyKey(old: Key, next: Key | undefined, tools: Tools): string | undefined {
  const name = `access key ${old.metadata.name}`
  if (isGoing(old)) return undefined // it was told when the deletion began
  if (!next || isGoing(next)) return `${name} was deleted`
  const [before, after] = [old.spec ?? {}, next.spec ?? {}]
  if (after.disabled && !before.disabled) return `${name} was disabled`
  if (!tools.isNoWider(before.scope, after.scope)) return `the scope of ${name} was narrowed`
  if (without(before.groups, after.groups).length) return `${name} lost groups`
  if (after.ttl && (!before.ttl || after.ttl < before.ttl)) return `${name} ends earlier`
  const isReplaced = next.status?.digest !== old.status?.digest && next.status?.previous === undefined
  return isReplaced ? `${name} was replaced` : undefined
}

type TeamSpec = { readonly users?: readonly string[] | undefined; readonly groups?: readonly string[] | undefined }
type Team = Resource<TeamSpec, unknown>

export function revokedByTeam(old: Team, next: Team | undefined, tools: Tools): readonly Beside[] {
  const { name = '' } = old.metadata
  if (isGoing(old)) return []
  if (!next || isGoing(next))
    return revocation({ groups: [`platform:team:${name}`] }, `team ${name} was deleted`, tools)
  const users = without(old.spec?.users, next.spec?.users)
  const groups = without(old.spec?.groups, next.spec?.groups)
  if (users.length + groups.length === 0) return []
  const which = { ...(users.length ? { users } : {}), ...(groups.length ? { groups } : {}) }
  return revocation(which, `they left team ${name}`, tools)
}

const isGoing = ({ metadata }: { readonly metadata: Resource['metadata'] }) => metadata.deletionTimestamp !== undefined

const without = (before: readonly string[] = [], after: readonly string[] = []) => {
  const kept = new Set(after)
  return before.filter(one => !kept.has(one))
}
