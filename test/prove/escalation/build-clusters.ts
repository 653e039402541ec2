// Connected clusters of a new world, with their agents, roles of teams, and delivered secrets.

import { type Gift, hand, make, rule } from './build-objects.ts'
import { agentKey, clusterRule, clusterSpec, courier, delivery, labelsOf, remoteRole } from './cluster-drafts.ts'
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
      rule([...write(), 'delete'], ours, chance.pick(['clusters', 'teams', 'projectsecrets'])),
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
    for (const team of names.teams)
      await write(stage, kinds.Team, '', team, {
        clusterRoles: [remoteRole(stage)],
        ...(chance.is(0.3) ? { owner: { user } } : {}),
        ...(chance.is(0.3) ? { users: [user] } : {}),
      })
    const rules = [rule(['deliver'], ours, 'clusters')]
    await make(stage, kinds.ClusterRole, '', 'courier', { rules })
    await make(stage, kinds.ClusterRoleBinding, '', 'courier', courier(user))
    for (const name of names.secrets) {
      const owner = { user: chance.is(0.5) ? user : administrator }
      const spec = { owner, deliver: [delivery(stage)] }
      const isThere = prover.model.get(kinds.ProjectSecret, 'p-shop', name) !== undefined
      if (isThere) await write(stage, kinds.ProjectSecret, 'p-shop', name, spec)
      else await make(stage, kinds.ProjectSecret, 'p-shop', name, { spec: { ...spec, data: prover.canaries.make() } })
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

/** Changes an object if it is there. */
async function write({ prover, chance }: Stage, kind: KindInfo, namespace: string, name: string, spec: Spec) {
  if (!prover.model.get(kind, namespace, name) || chance.is(0.3)) return
  const at = { kind, namespace, name, sub: '', dryRun: false, what: 'preparation' } as const
  await prover.perform({ actor: 'admin', secret: prover.server.adminKey, method: 'merge', body: { spec }, ...at })
}
