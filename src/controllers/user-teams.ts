// Keeps status.teams of Users current when teams, or the groups of keys and sessions, change (D63).

import type { Resource } from '../api/object.ts'
import type { Resources } from '../api/resources.ts'
import { OwnedAccessKey } from '../kinds/owned-access-key.ts'
import { Team } from '../kinds/team.ts'
import { User } from '../kinds/user.ts'
import { mentions } from '../reconcile/document-words.ts'
import { startInformer } from '../reconcile/informer.ts'
import { startLoop } from '../reconcile/work-queue.ts'
import { rewriteStatus } from './write-conditions.ts'

export type UserTeamsOptions = {
  readonly resources: Resources
  /** Names of the teams of a user. */
  readonly teamsOf: (username: string) => readonly string[]
  readonly failed: (what: string, error: unknown) => void
}

export function startUserTeams({ resources, teamsOf, failed }: UserTeamsOptions): {
  readonly ready: Promise<void>
  idle(): Promise<void>
  stop(): Promise<void>
} {
  /** Names of the Users, by username. */
  const names = new Map<string, string>()
  const loop = startLoop({
    reconcile: async name => {
      await rewriteStatus(resources, { kind: User, ref: { namespace: '', name } }, async user => {
        const { teams: before = [], ...status } = (user.status ?? {}) as { teams?: readonly string[] }
        const teams = teamsOf(String(user.spec?.['username']))
        if (JSON.stringify(teams) === JSON.stringify(before)) return undefined
        return { ...user, status: { ...status, teams } as Resource['status'] } as Resource
      })
      return undefined
    },
    failed: (name, error) => failed(`listing the teams of user "${name}"`, error),
  })
  const check = (usernames: Iterable<string>) => {
    for (const username of usernames) {
      const name = names.get(username)
      if (name !== undefined) loop.add(name)
    }
  }
  const users = startInformer({
    resources,
    kind: User,
    keep: ({ spec }) => String(spec?.['username'] ?? ''),
    changed: ({ name }, now, before) => {
      if (before !== undefined && now === undefined) names.delete(before)
      if (now === undefined) return
      names.set(now, name)
      // Later changes of the User do not change its teams.
      if (before === undefined) loop.add(name)
    },
    failed: error => failed('watching users', error),
  })
  const teams = startInformer({
    resources,
    kind: Team,
    counts: mentions('users', 'groups'),
    keep: ({ spec, metadata }) => ({
      users: (spec?.['users'] ?? []) as readonly string[],
      groups: JSON.stringify(spec?.['groups'] ?? []),
      isTerminating: metadata.deletionTimestamp !== undefined,
    }),
    changed: (_, now, before) => {
      // Groups are in keys and sessions of any user.
      const hasOtherGroups =
        (now?.groups ?? '[]') !== (before?.groups ?? '[]') || now?.isTerminating !== before?.isTerminating
      check(hasOtherGroups ? names.keys() : new Set([...(now?.users ?? []), ...(before?.users ?? [])]))
    },
    failed: error => failed('watching teams', error),
  })
  const keys = startInformer({
    resources,
    kind: OwnedAccessKey,
    counts: mentions('groups', 'disabled'),
    keep: ({ spec }) => String(spec?.['user'] ?? ''),
    changed: (_, now, before) => check([now ?? '', before ?? '']),
    failed: error => failed('watching access keys', error),
  })
  const informers = [users, teams, keys]
  return {
    ready: Promise.all(informers.map(one => one.ready)).then(() => {}),
    idle: loop.idle,
    async stop() {
      for (const one of informers) one.stop()
      await loop.stop()
    },
  }
}
