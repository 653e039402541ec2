// Deletes the records of usernames that a team no longer has. The garbage collector deletes those of deleted teams.

import { ignoreConflict, ignoreNotFound } from '../api/errors.ts'
import type { Resources } from '../api/resources.ts'
import { Team } from '../kinds/team.ts'
import { TeamUsernameRecord } from '../kinds/team-username-record.ts'
import { startInformer } from '../reconcile/informer.ts'
import { startLoop } from '../reconcile/work-queue.ts'

export type TeamUsernamesOptions = {
  readonly resources: Resources
  readonly failed: (what: string, error: unknown) => void
}

export function startTeamUsernames({ resources, failed }: TeamUsernamesOptions): {
  readonly ready: Promise<void>
  idle(): Promise<void>
  stop(): Promise<void>
} {
  const byTeam = new Map<string, Set<string>>()
  const informer = startInformer({
    resources,
    kind: TeamUsernameRecord,
    keep: ({ metadata, spec }) => ({ team: String(spec?.['team']), resourceVersion: metadata.resourceVersion ?? '' }),
    changed: ({ name: username }, now, before) => {
      if (before) forget(before.team, username)
      if (!now) return
      byTeam.set(now.team, (byTeam.get(now.team) ?? new Set()).add(username))
      // A team with a new username has lost its earlier one.
      for (const one of byTeam.get(now.team) ?? []) loop.add(one)
    },
    failed: error => failed('watching usernames of teams', error),
  })
  const forget = (team: string, username: string) => {
    const usernames = byTeam.get(team)
    usernames?.delete(username)
    if (usernames?.size === 0) byTeam.delete(team)
  }
  const loop = startLoop({
    reconcile: async username => {
      const record = informer.get({ namespace: '', name: username })
      if (!record) return undefined
      const team = await resources.get(Team, { namespace: '', name: record.team }).catch(ignoreNotFound)
      if (team?.object.spec?.['username'] === username) return undefined
      // A team that claims the username at this moment writes its record.
      const preconditions = { resourceVersion: record.resourceVersion }
      await resources
        .delete(TeamUsernameRecord, { namespace: '', name: username }, { preconditions })
        .catch(ignoreConflict)
      return undefined
    },
    failed: (username, error) => failed(`deleting the record of username "${username}"`, error),
  })
  return {
    ready: informer.ready,
    idle: loop.idle,
    async stop() {
      informer.stop()
      await loop.stop()
    },
  }
}
