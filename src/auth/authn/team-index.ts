// The index of team members by user name and by group (D16, D17). It follows the kind Team.

import { isReservedName } from '../../api/names.ts'
import type { Resource } from '../../api/object.ts'
import type { Affects } from '../../api/permissions.ts'
import type { Document, Resources } from '../../api/resources.ts'
import { clusterUidsOf } from '../../kinds/cluster-selection.ts'
import { pulledBy, pullKey } from '../../kinds/pull-secrets.ts'
import { Team } from '../../kinds/team.ts'
import { localRoles, remoteRoles } from '../../kinds/team-cluster-roles.ts'
import { latin1, mentions } from '../../reconcile/document-words.ts'
import { startInformer } from '../../reconcile/informer.ts'

type Pulled = ReturnType<typeof pulledBy>[number]

export type TeamRecord = {
  readonly name: string
  readonly uid: string
  /** Of the state that this record was read from. */
  readonly version: number
  readonly username: string
  readonly users: readonly string[]
  readonly groups: readonly string[]
  readonly clusterRoles: readonly string[]
  /** Cluster roles of connected clusters, and the uids of the clusters that they name. */
  readonly remoteRoles: ReturnType<typeof remoteRoles>
  readonly clusterUids: ReturnType<typeof clusterUidsOf>
  /** Whether it is being deleted. Such a team has no members, and its keys are invalid (D18). */
  readonly isTerminating: boolean
  /** The owner and access entries of the team. */
  readonly access: string
  /** Secrets that members may get, with the uid of each, by `pullKey`. */
  readonly pulled: ReadonlyMap<string, Pulled>
}

export interface TeamIndex {
  readonly ready: Promise<void>
  /** Names of the teams of a user with these groups, in order. A team is never a member of a team. */
  of(user: string, groups: readonly string[]): readonly string[]
  get(name: string): TeamRecord | undefined
  /** The uid of a team that exists and is not being deleted. */
  uidOf(name: string): string | undefined
  /** Names of the teams with this username. Two teams of an older store can have the same. */
  withUsername(username: string): readonly string[]
  /** The name of the team that a text refers to, or the text. A name takes precedence, and a username of several teams refers to none (D23). */
  nameOf(text: string): string
  all(): Iterable<TeamRecord>
  /** Changes whenever a user may have joined or left a team. Results for an earlier version are stale. */
  versionOf(user: string): number
  stop(): void
}

export type TeamIndexOptions = {
  readonly resources: Resources
  /** The stored team. */
  readonly peek: (name: string) => Resource | undefined
  /** Called when a change may affect permissions; `roles`: because of the cluster roles of a team. `affects` absent: everybody's. */
  readonly changed: (what: {
    readonly name: string
    readonly roles: boolean
    readonly affects?: Affects | undefined
  }) => void
  readonly failed: (error: unknown) => void
}

export function openTeamIndex({ resources, peek, changed, failed }: TeamIndexOptions): TeamIndex {
  const byUser = new Map<string, Set<string>>()
  const byGroup = new Map<string, Set<string>>()
  const byUsername = new Map<string, Set<string>>()
  const versions = openVersions()
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
      const change = changeOf(before, now)
      if (!change) return
      for (const [record, isIn] of [
        [before, false],
        [now, true],
      ] as const) {
        if (!record) continue
        enter(byUser, record.users, name, isIn)
        enter(byUsername, [record.username], name, isIn)
        enter(byGroup, record.groups, name, isIn)
      }
      if (change.groups) versions.stepAll()
      else for (const record of [before, now]) for (const user of record?.users ?? []) versions.step(user)
      changed({ name, roles: change.roles, affects: change.onlyMembers ? isMember(name, before, now) : undefined })
    },
  })
  const index: TeamIndex = {
    ready: informer.ready,
    of(user, groups) {
      const found = new Set(byUser.get(user))
      for (const group of groups) for (const team of byGroup.get(group) ?? []) found.add(team)
      return [...found].sort()
    },
    get: name => {
      const kept = informer.get({ namespace: '', name })
      const object = kept ? undefined : peek(name)
      return kept ?? (object && read(object))
    },
    uidOf: name => {
      const kept = informer.get({ namespace: '', name }) ?? peek(name)
      if (!kept) return undefined
      if ('metadata' in kept) return kept.metadata.deletionTimestamp === undefined ? kept.metadata.uid : undefined
      return kept.isTerminating ? undefined : kept.uid
    },
    withUsername: username => {
      // The index leaves out teams without members whose username is their name.
      const isOwn = peek(username)?.spec?.username === username
      const names = byUsername.get(username)
      if (!names) return isOwn ? [username] : []
      return isOwn && !names.has(username) ? [...names, username] : [...names]
    },
    nameOf(text) {
      if (text === '' || index.uidOf(text) !== undefined) return text
      const [name = text, ...others] = index.withUsername(text).filter(one => index.uidOf(one) !== undefined)
      return others.length === 0 ? name : text
    },
    all: () => informer.values(),
    versionOf: versions.of,
    stop: informer.stop,
  }
  return index
}

// A team without members, whose username is its own name, affects nobody. There may be very many of them, so the
// bytes are checked before an object is parsed.
const hasMembers = mentions('users', 'groups', 'clusterRoles', 'access', 'imagePullSecrets')
/** A label or annotation may have the same name. Only if all occurrences have the team's own name, its username is that name. */
function hasOtherName({ json, ref }: Document): boolean {
  const text = latin1(json)
  const own = `username":"${ref.name}"`
  let found = 0
  for (let at = text.indexOf(key); at !== -1; at = text.indexOf(key, at + key.length)) {
    if (!text.startsWith(own, at)) return true
    found++
  }
  return found === 0
}
/** Without its first quote, because a search for a quote stops at every word. */
const key = 'username":"'

function read({ metadata, spec = {} }: Resource): TeamRecord {
  const { users, groups, username, owner, access } = spec as {
    users?: string[]
    groups?: string[]
    username?: string
    owner?: unknown
    access?: unknown
  }
  const isTerminating = metadata.deletionTimestamp !== undefined
  return {
    name: metadata.name ?? '',
    uid: metadata.uid ?? '',
    version: Number(metadata.resourceVersion ?? 0),
    username: username ?? '',
    users: isTerminating ? [] : (users ?? []),
    // Teams stored by earlier versions may have such names, which are rejected now (D61).
    groups: isTerminating ? [] : (groups ?? []).filter(name => !isReservedName(name)),
    clusterRoles: isTerminating ? [] : localRoles(spec),
    remoteRoles: isTerminating ? [] : remoteRoles(spec),
    clusterUids: clusterUidsOf({ metadata }),
    isTerminating,
    pulled: new Map(isTerminating ? [] : pulledBy({ metadata, spec }).map(one => [pullKey(one), one])),
    access: owner === undefined && access === undefined ? '' : JSON.stringify([owner, access]),
  }
}

/** `onlyMembers`: the permissions of others are as before. */
type Change = { readonly groups: boolean; readonly roles: boolean; readonly onlyMembers: boolean }

/** undefined: nobody's permissions changed, as in most writes of a team. */
function changeOf(before: TeamRecord | undefined, now: TeamRecord | undefined): Change | undefined {
  const groups = !isSame(before?.groups, now?.groups)
  // A binding to a team name refers to the team with that uid (D61).
  const roles = !isSame(before?.clusterRoles, now?.clusterRoles) || before?.uid !== now?.uid
  const onlyMembers =
    before?.uid === now?.uid &&
    before?.username === now?.username &&
    before?.isTerminating === now?.isTerminating &&
    before?.access === now?.access
  const isOther =
    !onlyMembers ||
    remoteIn(before) !== remoteIn(now) ||
    groups ||
    roles ||
    !isSame(before?.users, now?.users) ||
    !isSame(pulledIn(before), pulledIn(now))
  return isOther ? { groups, roles, onlyMembers } : undefined
}

/** Whether a caller is or was a member, or acts as the team. */
function isMember(name: string, ...records: readonly (TeamRecord | undefined)[]): Affects {
  const users = new Set(records.flatMap(record => record?.users ?? []))
  const groups = new Set([`platform:team:${name}`, ...records.flatMap(record => record?.groups ?? [])])
  return caller => users.has(caller.username) || caller.groups.some(group => groups.has(group))
}

const remoteIn = (record: TeamRecord | undefined) =>
  JSON.stringify([record?.remoteRoles ?? [], record?.clusterUids ?? {}])

const pulledIn = (record: TeamRecord | undefined) =>
  [...(record?.pulled.values() ?? [])].map(one => `${pullKey(one)} ${one.uid}`)

const isSame = (one: readonly string[] = [], other: readonly string[] = []) =>
  one.length === other.length && one.every((word, index) => word === other[index])

/** Characters of all users. */
const maxSize = 2_000_000

/** By user. Users without an entry have the last common version. */
function openVersions() {
  const own = new Map<string, number>()
  let size = 0
  let newest = 0
  let floor = 0
  const stepAll = () => {
    own.clear()
    size = 0
    floor = ++newest
  }
  return {
    of: (user: string): number => own.get(user) ?? floor,
    step: (user: string): void => {
      if (!own.has(user)) size += user.length
      if (size > maxSize) {
        stepAll()
        size = user.length
      }
      own.set(user, ++newest)
    },
    stepAll,
  }
}
