// The part of a scope that concerns one cluster: the scope of the token that the server sends to the gateway of the cluster (D68).

import type { Scope, ScopeRule } from '../../api/caller.ts'
import { restricts } from './scope.ts'
import { covers, isMatchable } from './scope-rules.ts'

/** No wider than the scope, and for no other cluster. */
export function scopeForCluster(scope: Scope | undefined, cluster: string): Scope {
  const whole = { clusters: [{ cluster }] }
  if (!restricts(scope) || scope.clusters?.some(one => covers(one.cluster, cluster))) return whole
  const rules = (scope.rules ?? []).filter(rule => isAbout(rule, cluster)).map(rule => only(rule, cluster))
  // A scope without any entry would restrict nothing.
  return { rules: rules.length ? rules : [nothing(cluster)] }
}

const isAbout = (rule: ScopeRule, cluster: string): boolean =>
  isMatchable(rule) &&
  (!rule.cluster || covers(rule.cluster, cluster)) &&
  (!rule.requestTargets?.length || rule.requestTargets.includes('Cluster'))

function only({ virtualClusters: _, ...rule }: ScopeRule, cluster: string): ScopeRule {
  return { ...rule, cluster, requestTargets: ['Cluster'] }
}

const nothing = (cluster: string): ScopeRule => ({ cluster, requestTargets: ['Cluster'], verbs: ['none'] })
