// Starts the controllers of a server.

import { startAccessRoles } from '../controllers/access-roles.ts'
import { startAggregation } from '../controllers/aggregation.ts'
import { startClusterCleanup } from '../controllers/cluster-cleanup.ts'
import { startClusterConditions } from '../controllers/cluster-conditions.ts'
import { startClusterReferences } from '../controllers/cluster-references.ts'
import { startExpiry } from '../controllers/expiry.ts'
import { startGarbageCollector } from '../controllers/garbage-collector.ts'
import { startProjectSecrets } from '../controllers/project-secret.ts'
import { startRevocationSweep } from '../controllers/revocation-sweep.ts'
import { startRotationOverlap } from '../controllers/rotation-overlap.ts'
import { startSecretVersions } from '../controllers/secret-versions.ts'
import { startSigningKeys } from '../controllers/signing-keys.ts'
import { startTeamReferences } from '../controllers/team-references.ts'
import { startTeamRoles } from '../controllers/team-roles.ts'
import { startTeamUsernames } from '../controllers/team-usernames.ts'
import { startUserKeys } from '../controllers/user-keys.ts'
import { startUserTeams } from '../controllers/user-teams.ts'
import { kinds } from '../kinds/index.ts'
import { readId } from '../kinds/last-read.ts'
import { OwnedAccessKey } from '../kinds/owned-access-key.ts'
import { ProjectSecret } from '../kinds/project-secret.ts'
import { ClusterRoleBinding, RoleBinding } from '../kinds/rbac.ts'
import { SharedSecret } from '../kinds/shared-secret.ts'
import { Team } from '../kinds/team.ts'
import type { Storage } from '../storage/storage.ts'
import type { ApiServer } from './api-server.ts'
import type { Settings } from './settings.ts'

export type ControllersOptions = {
  readonly apiServer: ApiServer
  readonly storage: Storage
  readonly settings: Settings
  readonly now: () => number
  readonly failed: (what: string, error: unknown) => void
}

const namingTeams = [SharedSecret, ProjectSecret, Team, OwnedAccessKey, RoleBinding, ClusterRoleBinding]

export type BackgroundLoops = {
  readonly ready: Promise<void>
  /** Resolves when no controller has queued or running work. Delayed work does not count. */
  idle(): Promise<void>
  stop(): Promise<void>
}

export function startBackgroundLoops({
  apiServer,
  storage: { activity },
  settings,
  now,
  failed,
}: ControllersOptions): BackgroundLoops {
  const { internalClient: resources, write, opened } = apiServer.controllers
  const controllers = [
    startGarbageCollector({ resources, kinds, now, failed }),
    startAccessRoles({ resources, kinds: [SharedSecret, ProjectSecret, Team], now, failed }),
    startExpiry({
      resources,
      now,
      lastActivity: uid => activity.last(uid),
      maxTTL: settings['auth.maxKeyTTL'] || undefined,
      hasDependents: apiServer.hasDependents,
      failed,
    }),
    startTeamReferences({ resources, kinds: namingTeams, teamUid: apiServer.teamUid, failed }),
    startTeamRoles({ resources, now, failed }),
    startTeamUsernames({ resources, failed }),
    startClusterReferences({ resources, failed }),
    startClusterCleanup({ resources, now, failed }),
    startClusterConditions({ resources, ...apiServer.clusterConditions, now, failed }),
    startRotationOverlap({ resources, write, now, failed }),
    startRevocationSweep({ resources, now, failed }),
    startAggregation({ resources, failed }),
    startSigningKeys({ resources, now, failed }),
    startProjectSecrets({
      ...apiServer,
      internalClient: resources,
      opened,
      removeStale: settings['secrets.removeStale'],
      now,
      failed,
    }),
    startUserKeys({ resources, leftOverKeys: apiServer.leftOverKeys, failed }),
    startUserTeams({ resources, teamsOf: apiServer.teamsOf, failed }),
    startSecretVersions({
      resources,
      max: settings['secrets.versions'],
      days: settings['secrets.versionDays'],
      now,
      gone: uid => activity.forget(readId(uid)),
      failed,
    }),
  ]
  return {
    ready: Promise.all(controllers.map(one => one.ready)).then(() => {}),
    idle: () => Promise.all(controllers.map(one => one.idle())).then(() => {}),
    stop: () => Promise.all(controllers.map(one => one.stop())).then(() => {}),
  }
}
