// Looks up whether the cluster has a ClusterRole. Kubernetes would bind one that does not exist.

import { isNotFound } from '../../api/errors.ts'
import type { Resources } from '../../api/resources.ts'
import { ClusterRole } from '../../kinds/rbac.ts'
import { AgentProblem } from './problems.ts'

/** By name, because the agent may only read the roles that it may bind. */
export type CheckRole = (name: string) => Promise<void>

const [foundFor, missingFor] = [20_000, 1000]

/** Rejects with AgentProblem if the cluster does not have the role. */
export function openClusterRoles(resources: Resources, ticks: () => number): CheckRole {
  const known = new Map<string, { readonly isFound: Promise<boolean>; until: number }>()
  const look = async (name: string) => {
    try {
      await resources.get(ClusterRole, { namespace: '', name })
      return true
    } catch (error) {
      if (isNotFound(error)) return false
      throw error
    }
  }
  const find = (name: string): Promise<boolean> => {
    const cached = known.get(name)
    if (cached && ticks() < cached.until) return cached.isFound
    const entry = { isFound: look(name), until: Number.POSITIVE_INFINITY }
    known.set(name, entry)
    entry.isFound.then(
      isFound => {
        entry.until = ticks() + (isFound ? foundFor : missingFor)
      },
      () => known.delete(name),
    )
    return entry.isFound
  }
  return async name => {
    if (await find(name)) return
    throw new AgentProblem(
      'RoleNotFound',
      `the cluster does not have the ClusterRole ${name}: create it, or change the team`,
    )
  }
}
