// Finds what a username holds: roles, teams and objects. A new identity must not get a username that holds something (D65).

import type { Kind } from '../../api/kind.ts'
import type { BoundRules, Shared } from '../../api/permissions.ts'
import type { Resources } from '../../api/resources.ts'
import { issuerGroup } from '../../kinds/machine-key.ts'
import type { AccessKeyIndex } from '../authn/access-key-index.ts'
import type { TeamIndex } from '../authn/team-index.ts'
import type { Rbac } from './rbac.ts'
import { sharedWithUser } from './team-grants.ts'

export type UsernameUses = {
  /** Whether a key, binding, team, owner or access entry has the username. */
  isUsed(username: string): Promise<boolean>
  /**
   * The rules bound to a user and to the groups of the user's keys, and the user's teams. `signsIn`: the user may sign in
   * again, with any group of the identity provider.
   */
  held(username: string, signsIn: boolean): { readonly bound: readonly BoundRules[]; readonly teams: readonly string[] }
  /** The permissions of a user from objects themselves. */
  shared(username: string): Promise<readonly Shared[]>
}

export type UsernameUsesOptions = {
  readonly keyIndex: AccessKeyIndex
  readonly rbac: Pick<Rbac, 'bindings' | 'grants'>
  readonly teams: Pick<TeamIndex, 'of' | 'all'>
  /** Whether a user may get a group from an identity provider. */
  readonly mayGetGroup: (username: string) => (group: string) => boolean
  readonly resources: Resources
  readonly kinds: readonly Kind[]
}

export function openUsernameUses(options: UsernameUsesOptions): UsernameUses {
  const { keyIndex, rbac, teams, resources, kinds, mayGetGroup } = options
  const groupsOf = (username: string): readonly string[] => {
    // Disabled keys count: they work again when somebody enables them or their user.
    const groups = new Set([`platform:user:${username}`])
    for (const key of keyIndex.ofUser(username)) {
      for (const group of keyIndex.groupsOf(key)) groups.add(group)
      if (key.machine) groups.add(issuerGroup(key.machine.name))
    }
    return [...groups]
  }
  /** Only groups that hold something. */
  const possibleGroups = (username: string): readonly string[] => {
    const groups = new Set([...rbac.bindings(), ...teams.all()].flatMap(one => one.groups))
    return [...groups].filter(mayGetGroup(username))
  }
  const hasKey = (username: string) => {
    for (const { user, subject } of keyIndex.all()) if (user === username || subject === username) return true
    return false
  }
  const isBound = (username: string) => {
    for (const { users, groups } of rbac.bindings())
      if (users.includes(username) || groups.includes(`platform:user:${username}`)) return true
    return false
  }
  const shared: UsernameUses['shared'] = username => sharedWithUser(resources, kinds, username)
  return {
    held(username, signsIn) {
      const groups = [...groupsOf(username), ...(signsIn ? possibleGroups(username) : [])]
      const bound = [...rbac.grants({ username, groups })].map(({ rules, namespace, roleRef }) => ({
        rules,
        namespace,
        role: roleRef,
      }))
      return { bound, teams: teams.of(username, groups) }
    },
    shared,
    isUsed: async username =>
      hasKey(username) ||
      isBound(username) ||
      teams.of(username, [`platform:user:${username}`]).length > 0 ||
      (await shared(username)).length > 0,
  }
}
