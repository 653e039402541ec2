// Connected clusters, and what teams and project secrets send to them, chosen randomly from small pools.

import type { Stage } from './generator-context.ts'
import type { Known } from './model.ts'
import {
  type ClusterSelection,
  type Delivery,
  type Obj,
  ours,
  type PolicyRule,
  rbac,
  type Spec,
  type Words,
} from './objects.ts'
import { agentOf } from './permissions.ts'
import { names } from './universe.ts'

/** Labels of a cluster, as selectors use them. */
export const labelsOf = ({ chance }: Stage): Words => (chance.is(0.7) ? { tier: chance.pick(['a', 'b']) } : {})

/** Namespaces of the clusters. Only those of the project get its secrets. */
export const projectsOf = ({ chance }: Stage): NonNullable<Spec['projects']> => {
  const shop = { project: 'shop', namespaces: chance.pick([['shop'], ['shop', 'jobs'], ['jobs']]) }
  const other = { project: 'bank', namespaces: ['vault'] }
  return chance.weighted([
    [5, [shop, other]],
    [3, [shop]],
    [1, [other]],
    [1, []],
  ])
}

export const gatewayOf = ({ chance }: Stage): NonNullable<Spec['gateway']> => ({
  url: `https://gateway-${chance.below(2)}.test`,
})

export const clusterSpec = (stage: Stage): Spec => ({
  projects: projectsOf(stage),
  ...(stage.chance.is(0.2) ? { gateway: gatewayOf(stage) } : {}),
  ...(stage.chance.is(0.6) ? { disabled: stage.chance.is(0.2) } : {}),
})

function selection({ chance }: Stage): ClusterSelection {
  return chance.weighted<() => ClusterSelection>([
    [6, () => ({ names: [...new Set([chance.pick(names.clusters), ...chance.some(names.clusters, 1)])] })],
    [3, () => ({ selector: { matchLabels: { tier: chance.pick(['a', 'b']) } } })],
    [1, () => ({ selector: { matchExpressions: [{ key: 'tier', operator: 'Exists' }] } })],
    [1, () => ({ selector: { matchExpressions: [{ key: 'tier', operator: 'NotIn', values: ['a'] }] } })],
  ])()
}

export const everyCluster: ClusterSelection = {
  selector: { matchExpressions: [{ key: 'tier', operator: 'NotIn', values: ['none'] }] },
}

export const remoteRole = (stage: Stage): { name: string; clusters: ClusterSelection } => ({
  name: stage.chance.pick(names.remoteRoles),
  clusters: selection(stage),
})

/** A role in every cluster with this label. */
export const roleByTier = (name: string, tier: string): { name: string; clusters: ClusterSelection } => ({
  name,
  clusters: { selector: { matchLabels: { tier } } },
})

export function delivery(stage: Stage): Delivery {
  const { chance } = stage
  return {
    clusters: selection(stage),
    ...(chance.is(0.4) ? { namespaces: [chance.pick(['shop', 'jobs', 'vault'])] } : {}),
    ...(chance.is(0.2) ? { name: 'registry' } : {}),
    ...(chance.is(0.2) ? { keys: ['password'] } : {}),
  }
}

/** A permission that sends something to a cluster, or reads what is sent. */
export function clusterRule({ chance }: Stage): PolicyRule {
  const { pick } = chance
  const named = (verbs: string[], resource: string, name: string): PolicyRule => ({
    verbs,
    apiGroups: [ours],
    resources: [resource],
    resourceNames: [name],
  })
  const cluster = pick(names.clusters)
  return chance.weighted<() => PolicyRule>([
    [4, () => named(['deliver'], 'clusters', cluster)],
    [4, () => named(['bind'], 'clusters/clusterroles', `${cluster}:${pick(names.remoteRoles)}`)],
    [1, () => named(['impersonate'], 'clusters', cluster)],
    [2, () => named(['get', 'watch'], 'clusters/desired', cluster)],
    [2, () => named(['update', 'patch'], 'clusters/status', cluster)],
    [2, () => named(['get', 'update', 'patch'], 'clusters', cluster)],
  ])()
}

/** Lets a user deliver to every cluster, as long as it exists. */
export const courier = (user: string): Pick<Obj, 'roleRef' | 'subjects'> => ({
  roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: 'courier' },
  subjects: [{ apiGroup: rbac, kind: 'User', name: user }],
})

/** A key of the agent of a cluster. */
export const agentKey = (cluster: Known): Spec => ({
  subject: agentOf(cluster),
  scope: { roles: [{ role: 'agent' }] },
})
