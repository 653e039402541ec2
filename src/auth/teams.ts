// Who is in which team, by name and by group (D16, D17). Follows Team.

import type { Resource } from '../api/object.ts'
import type { Document, Resources } from '../api/resources.ts'
import { Team } from '../kinds/team.ts'
import { latin1, mentions, startInformer } from '../reconcile/informer.ts'

export type TeamRecord = {
  readonly name: string
  readonly username: string
  readonly users: readonly string[]
  readonly groups: readonly string[]
  readonly clusterRoles: readonly string[]
  /** Whether its deletion is under way: then it has no members, and nobody acts as it (D18). */
  readonly going: boolean
}

export interface Teams {
  readonly ready: Promise<void>
  /** Names of the teams of a user with these groups, in order. A team is never a member of a team. */
  of(user: string, groups: readonly string[]): readonly string[]
  get(name: string): TeamRecord | undefined
  withUsername(username: string): string | undefined
  all(): Iterable<TeamRecord>
  /** Changes with every change of a team: what was derived before it is stale. */
  readonly version: number
  stop(): void
}

export type TeamsOptions = {
  readonly resources: Resources
  /** A team as it is stored. */
  readonly look: (name: string) => Resource | undefined
  readonly changed: () => void
  readonly failed: (error: unknown) => void
}

export function openTeams({ resources, look, changed, failed }: TeamsOptions): Teams {
  const byUser = new Map<string, Set<string>>()
  const byGroup = new Map<string, Set<string>>()
  const byUsername = new Map<string, string>()
  let version = 0
  const enter = (index: Map<string, Set<string>>, words: readonly string[], team: string, isIn: boolean) => {
    for (const word of words) {
      const set = index.get(word) ?? new Set()
      if (isIn) set.add(team)
      else set.delete(team)
      if (set.size) index.set(word, set)
      else index.delete(word)
    }
  }
  const informer = startInformer({
    resources,
    kind: Team,
    counts: document => hasMembers(document) || hasOtherName(document),
    keep: read,
    failed,
    changed: ({ name }, now, before) => {
      for (const [record, isIn] of [
        [before, false],
        [now, true],
      ] as const) {
        if (!record) continue
        enter(byUser, record.users, name, isIn)
        if (isIn) byUsername.set(record.username, name)
        else if (byUsername.get(record.username) === name) byUsername.delete(record.username)
        enter(byGroup, record.groups, name, isIn)
      }
      version++
      changed()
    },
  })
  return {
    ready: informer.ready,
    of(user, groups) {
      const found = new Set(byUser.get(user))
      for (const group of groups) for (const team of byGroup.get(group) ?? []) found.add(team)
      return [...found].sort()
    },
    get: name => {
      const kept = informer.get({ namespace: '', name })
      const object = kept ? undefined : look(name)
      return kept ?? (object && read(object))
    },
    withUsername: username =>
      byUsername.get(username) ?? (look(username)?.spec?.username === username ? username : undefined),
    all: () => informer.values(),
    get version() {
      return version
    },
    stop: informer.stop,
  }
}

// A team that nobody is in and that has no name but its own says nothing about anybody. There may be very many of
// those, and they are told apart without being parsed.
const hasMembers = mentions('users', 'groups', 'clusterRoles', 'access')
/** A label or annotation may be called so, too: only where all of them say its own name is that its username. */
function hasOtherName({ json, ref }: Document): boolean {
  const text = latin1(json)
  const own = `"username":"${ref.name}"`
  let found = 0
  for (let at = text.indexOf(key); at !== -1; at = text.indexOf(key, at + key.length)) {
    if (!text.startsWith(own, at)) return true
    found++
  }
  return found === 0
}
const key = '"username":'

function read({ metadata, spec = {} }: Resource): TeamRecord {
  const { users, groups, username, clusterRoles } = spec as {
    users?: string[]
    groups?: string[]
    username?: string
    clusterRoles?: { name?: string }[]
  }
  const going = metadata.deletionTimestamp !== undefined
  return {
    name: metadata.name ?? '',
    username: username ?? '',
    users: going ? [] : (users ?? []),
    groups: going ? [] : (groups ?? []),
    clusterRoles: going ? [] : (clusterRoles ?? []).map(role => role.name ?? ''),
    going,
  }
}
