// Keeps the condition RolesResolved of teams current when cluster roles are created or deleted (D23).

import { ignoreNotFound } from '../api/errors.ts'
import type { Resource } from '../api/object.ts'
import type { Resources } from '../api/resources.ts'
import { rolesResolved } from '../kinds/object-conditions.ts'
import { ClusterRole } from '../kinds/rbac.ts'
import { Team } from '../kinds/team.ts'
import { localRoles } from '../kinds/team-cluster-roles.ts'
import { mentions } from '../reconcile/document-words.ts'
import { startInformer } from '../reconcile/informer.ts'
import { startLoop } from '../reconcile/work-queue.ts'
import { missingRolesOf, writeConditions } from './write-conditions.ts'

export type TeamRolesOptions = {
  readonly resources: Resources
  readonly now: () => number
  readonly failed: (what: string, error: unknown) => void
}

export function startTeamRoles({ resources, now, failed }: TeamRolesOptions): {
  readonly ready: Promise<void>
  idle(): Promise<void>
  stop(): Promise<void>
} {
  /** Names of teams, by the role that they name. */
  const naming = new Map<string, Set<string>>()
  const loop = startLoop({
    reconcile: async name => {
      await reconcile(resources, name, now)
      return undefined
    },
    failed: (name, error) => failed(`checking the roles of team "${name}"`, error),
  })
  const checkRole = (role: string) => {
    for (const team of naming.get(role) ?? []) loop.add(team)
  }
  const teams = startInformer({
    resources,
    kind: Team,
    counts: mentions('clusterRoles'),
    keep: rolesOf,
    changed: ({ name }, next = [], before = []) => {
      for (const role of before) {
        naming.get(role)?.delete(name)
        if (naming.get(role)?.size === 0) naming.delete(role)
      }
      for (const role of next) naming.set(role, (naming.get(role) ?? new Set()).add(name))
      // A role can be created while the team is being written, so the write alone does not know.
      if (next.length) loop.add(name)
    },
    failed: error => failed('watching teams', error),
  })
  const roles = startInformer({
    resources,
    kind: ClusterRole,
    counts: ({ ref }) => naming.has(ref.name),
    keep: () => undefined,
    changed: ({ name }) => checkRole(name),
    deleted: ({ metadata }) => checkRole(metadata.name ?? ''),
    listed: () => {
      for (const role of naming.keys()) checkRole(role)
    },
    failed: error => failed('watching cluster roles', error),
  })
  return {
    ready: Promise.all([teams.ready, roles.ready]).then(() => {}),
    idle: loop.idle,
    async stop() {
      teams.stop()
      roles.stop()
      await loop.stop()
    },
  }
}

const rolesOf = ({ spec }: Resource): readonly string[] => localRoles(spec)

async function reconcile(resources: Resources, name: string, now: () => number): Promise<void> {
  const owner = { kind: Team, ref: { namespace: '', name } }
  const team = await resources.get(Team, owner.ref).then(({ object }) => object, ignoreNotFound)
  if (!team) return
  const findings = [rolesResolved(await missingRolesOf(resources, team))]
  const wanted = JSON.stringify(rolesOf(team))
  await writeConditions(resources, owner, {
    findings,
    isCurrent: object => object.metadata.uid === team.metadata.uid && JSON.stringify(rolesOf(object)) === wanted,
    now,
  })
}
