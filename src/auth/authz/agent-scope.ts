// The part of the scope role agent that depends on the caller: its own cluster (D68).

import type { Caller } from '../../api/caller.ts'
import type { Question } from '../../api/permissions.ts'
import { Cluster } from '../../kinds/cluster.ts'
import { clusterOfAgent } from '../../kinds/cluster-desired.ts'
import { rolesOf } from './scope.ts'

/**
 * The scope role agent covers what an agent reads and reports about its own cluster. It does not cover this for keys of others, who might
 * read what is delivered to every cluster.
 */
export function isOwnCluster({ username, scope }: Caller, question: Question): boolean {
  if ('path' in question || !rolesOf(scope ?? {}).some(({ role }) => role === 'agent')) return false
  const { group, resource, subresource = '', name } = question.target
  const isReported =
    group === Cluster.group && resource === Cluster.plural && ['desired', 'status'].includes(subresource)
  return isReported && name !== undefined && clusterOfAgent(username) === name
}
