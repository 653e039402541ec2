// Tells admission, the gate and the controllers about connected clusters (D68, D69).

import type { AdmissionDependencies } from '../admission/admissions.ts'
import type { GateDependencies } from '../admission/gate.ts'
import { isUndecryptable } from '../api/errors.ts'
import type { Json, Ref, Resource } from '../api/object.ts'
import type { TeamRecord } from '../auth/authn/team-index.ts'
import { type DataOf, missingClusters } from '../auth/authz/delivery-report.ts'
import type { DesiredState } from '../auth/authz/desired-state.ts'
import { closedReason, watchDesired } from '../auth/authz/desired-watch.ts'
import type { ClusterConditionsOptions } from '../controllers/cluster-conditions.ts'
import { type SelectableCluster, selects } from '../kinds/cluster-selection.ts'
import type { ApiServer } from './api-server.ts'

type Wanted = Pick<
  AdmissionDependencies & GateDependencies,
  'clusters' | 'clusterUid' | 'clusterRolesOf' | 'flowsTo' | 'desiredItems' | 'watchDesired'
>

/** A ProjectSecret with its data. */
type Open = (ref: Ref) => Resource | undefined

type Options = {
  readonly state: () => DesiredState
  readonly teamNamed: (name: string) => TeamRecord | undefined
  readonly open: Open
  readonly failed: (what: string, error: unknown) => void
}

export function clusterDependencies({ state, teamNamed, open, failed }: Options): Wanted {
  const clusters = () => [...state().clusters.all()].filter(({ isTerminating }) => !isTerminating)
  return {
    clusters,
    clusterUid: name => {
      const cluster = state().clusters.get(name)
      return cluster?.isTerminating ? undefined : cluster?.uid
    },
    clusterRolesOf: name => rolesOf(teamNamed(name), clusters()),
    flowsTo: cluster => state().flowsTo(cluster),
    desiredItems: ({ name, uid }) => {
      const closed = closedReason(state(), name, uid)
      if (closed) throw closed
      const isTerminating = state().clusters.get(name)?.isTerminating
      const items = [...(isTerminating ? [] : state().itemsOf(uid).values())].map(item =>
        'role' in item
          ? { name: item.id, role: item.role }
          : { name: item.id, secret: { ...item.target, source: { ...item.secret.ref, uid: item.secret.uid } } },
      )
      return { version: state().version, items: items as unknown as readonly Json[] }
    },
    watchDesired: cluster => {
      const closed = closedReason(state(), cluster.name, cluster.uid)
      if (closed) throw closed
      return watchDesired({ state: state(), open, failed }, cluster)
    },
  }
}

type Teams = { all(): Iterable<TeamRecord>; get(name: string): TeamRecord | undefined }

/** For the controller of conditions, and for metrics. */
export const clusterReports = (
  state: DesiredState,
  teams: Teams,
  open: Open,
): Pick<ApiServer, 'clusterConditions' | 'clusterStates'> => ({
  clusterConditions: conditionDependencies(state, teams, open),
  clusterStates: state.clusters.states,
})

const conditionDependencies = (
  state: DesiredState,
  teams: Teams,
  open: Open,
): Pick<ClusterConditionsOptions, 'desired' | 'teamNames' | 'teamAt'> => ({
  desired: {
    ready: state.ready,
    secretAt: state.secretAt,
    *slots() {
      for (const { ref } of state.secrets()) yield `${ref.namespace}/${ref.name}`
    },
    deliveryOf: slot => {
      const secret = state.secretAt(slot)
      return secret ? state.deliveryOf(secret, dataWith(open)) : []
    },
    followSecrets: state.followSecrets,
  },
  *teamNames() {
    for (const team of teams.all()) if (team.remoteRoles.length) yield team.name
  },
  teamAt: name => {
    const { uid = '', remoteRoles = [], clusterUids = {} } = teams.get(name) ?? {}
    if (remoteRoles.length === 0) return undefined
    const isSelected = (one: SelectableCluster) =>
      remoteRoles.some(({ clusters }) => selects(clusters, one, clusterUids))
    const clusters = [...state.clusters.all()].filter(one => !one.isTerminating && isSelected(one)).map(one => one.name)
    const names = remoteRoles.flatMap(one => one.clusters.names ?? [])
    const missing = missingClusters(names, clusterUids, state.clusters.get)
    return { uid, clusters, missing, changedAt: state.teamChangedAt(name) }
  },
})

/** Stored data that cannot be decrypted is reported elsewhere. */
const dataWith =
  (open: Open): DataOf =>
  ({ ref, uid, generation }) => {
    try {
      const { metadata, spec } = open(ref) ?? {}
      return metadata?.uid === uid && metadata.generation === generation
        ? ((spec?.['data'] ?? {}) as object)
        : undefined
    } catch (error) {
      if (isUndecryptable(error)) return undefined
      throw error
    }
  }

/** Also roles of named clusters that do not exist yet. */
function rolesOf(team: TeamRecord | undefined, all: readonly SelectableCluster[]) {
  return (team?.remoteRoles ?? []).flatMap(({ role, clusters }) => {
    const found = all.filter(one => selects(clusters, one, team?.clusterUids ?? {}))
    const known = new Set(found.map(({ name }) => name))
    // A name with a uid means a cluster that is gone.
    const isFree = (name: string) => !known.has(name) && !Object.hasOwn(team?.clusterUids ?? {}, name)
    const others = (clusters.names ?? []).filter(isFree)
    return [
      ...found.map(({ name: cluster, uid }) => ({ cluster, role, uid })),
      ...others.map(cluster => ({ cluster, role })),
    ]
  })
}
