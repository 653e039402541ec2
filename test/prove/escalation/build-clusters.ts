// Connected clusters of a new world, with their agents, roles of teams, and delivered secrets.

import { type Gift, hand, make, rule } from './build-objects.ts'
import {
  agentKey,
  clusterRule,
  clusterSpec,
  courier,
  delivery,
  everyCluster,
  labelsOf,
  remoteRole,
  roleByTier,
} from './cluster-drafts.ts'
import type { Stage } from './generator-context.ts'
import { type KindInfo, kinds, ours, type Spec } from './objects.ts'
import { giveAgentToken, nameAgent } from './sign-in-steps.ts'
import { administrator, names } from './universe.ts'

/** Writers of clusters, teams and secrets, with a few of the permissions that these writes ask for. */
export const clusterGift: Gift = {
  rules: stage => {
    const { chance } = stage
    const write = () => ['create', 'update', 'patch', 'get']
    return [
      rule([...write(), 'delete'], ours, chance.pick(['clusters', 'clusters', 'teams', 'projectsecrets'])),
      rule(write(), ours, chance.pick(['clusters', 'teams', 'projectsecrets'])),
      ...Array.from({ length: 3 }, () => clusterRule(stage)),
    ]
  },
  objects: async (stage, user) => {
    const { chance, prover } = stage
    for (const name of names.clusters)
      if (name === 'c0' || chance.is(0.6))
        await make(stage, kinds.Cluster, '', name, {
          metadata: { name, labels: labelsOf(stage) },
          spec: clusterSpec(stage),
        })
    // Two teams with one role, for clusters with different labels.
    const common = chance.is(0.3) ? remoteRole(stage).name : undefined
    for (const [index, team] of names.teams.entries()) {
      const isThere = prover.model.get(kinds.Team, '', team) !== undefined
      if (common === undefined && (!isThere || chance.is(0.3))) continue
      const spec = {
        clusterRoles: [common === undefined ? remoteRole(stage) : roleByTier(common, index % 2 ? 'b' : 'a')],
        ...(chance.is(0.5) ? { owner: { user } } : {}),
        ...(chance.is(0.3) ? { users: [user] } : {}),
      }
      if (isThere) await write(stage, kinds.Team, '', team, spec)
      else await make(stage, kinds.Team, '', team, { spec })
    }
    const rules = [rule(['deliver'], ours, 'clusters')]
    await make(stage, kinds.ClusterRole, '', 'courier', { rules })
    await make(stage, kinds.ClusterRoleBinding, '', 'courier', courier(user))
    for (const name of names.secrets) {
      // Without secrets, a new label needs only the roles.
      if (common !== undefined && chance.is(0.7)) continue
      // One that every cluster with a namespace of the project gets, and that attackers seldom read.
      const isEverywhere = name === 's0' && chance.is(0.6)
      const owner = { user: !isEverywhere && chance.is(0.5) ? user : administrator }
      const spec = { owner, deliver: [isEverywhere ? { clusters: everyCluster } : delivery(stage)] }
      const isThere = prover.model.get(kinds.ProjectSecret, 'p-shop', name) !== undefined
      if (isThere && chance.is(0.7)) await write(stage, kinds.ProjectSecret, 'p-shop', name, spec)
      if (!isThere)
        await make(stage, kinds.ProjectSecret, 'p-shop', name, { spec: { ...spec, data: prover.canaries.make() } })
    }
    for (const next of [nameAgent, giveAgentToken]) {
      const step = next(stage)
      if (step) await prover.signIn(step)
    }
    for (const [index, cluster] of prover.model.of(kinds.Cluster).slice(0, 2).entries()) {
      if (index === 0) await hand(stage, `agent${index}`, agentKey(cluster))
      else await make(stage, kinds.OwnedAccessKey, '', `agent${index}`, { spec: agentKey(cluster) })
    }
  },
}

/** As the administrator. */
async function write({ prover }: Stage, kind: KindInfo, namespace: string, name: string, spec: Spec) {
  const at = { kind, namespace, name, sub: '', dryRun: false, what: 'preparation' } as const
  await prover.perform({ actor: 'admin', secret: prover.server.adminKey, method: 'merge', body: { spec }, ...at })
}
