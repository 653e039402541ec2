// Brings one object of the cluster in order, and says what stands in the way.

import type { ClusterProblem } from '../../kinds/cluster.ts'
import type { Apply } from './apply.ts'
import type { CheckRole } from './cluster-roles.ts'
import { type DesiredState, type Wanted, winnerOf } from './desired-state.ts'
import { type Action, plan } from './plan.ts'
import { AgentProblem, problemOf, reasonOf, shortened } from './problems.ts'
import type { RestoreBackoff } from './restore-backoff.ts'
import { type Actual, forbiddenReason, type Target, targetAt } from './wanted-object.ts'

export type ReconcileOptions = {
  readonly desired: Pick<DesiredState, 'at'>
  /** Whether the agent knows the objects of this kind and namespace; undefined: not yet. */
  readonly state: (target: Target) => 'ready' | Error | undefined
  readonly actual: (target: Target) => Actual | undefined
  readonly checkRole: CheckRole
  readonly apply: Apply
  readonly backoff: RestoreBackoff
  readonly report: (key: string, problems: readonly ClusterProblem[]) => void
}

/**
 * Resolves to whether the target is in order or has a problem, or to the milliseconds after which to try again. Rejects: try again
 * later.
 */
export function openReconcile({ desired, state, actual, checkRole, apply, backoff, report }: ReconcileOptions) {
  return async (key: string): Promise<boolean | number> => {
    const target = targetAt(key)
    const items = desired.at(key)
    const known = state(target)
    if (known !== 'ready') {
      const why = reasonOf(known, 'none')
      if (!why) return false
      report(
        key,
        items.map(({ item }) => problemOf(item, why)),
      )
      return true
    }
    const there = actual(target)
    const winner = winnerOf(items, there?.sourceUid)
    const losers = items.filter(one => one !== winner && one.item.secret).map(one => duplicate(one, winner))
    if (winner && backoff.isContested(key)) losers.push(problemOf(winner.item, contested))
    const delay = winner && plan(winner, there) !== 'none' ? backoff.remaining(key, winner.digest) : 0
    if (delay > 0) {
      report(key, losers)
      return delay
    }
    let last: Action = 'none'
    try {
      if (winner) await checkItem(winner, checkRole)
      const trying = (action: Action) => {
        last = action
      }
      await apply({ target, wanted: winner, actual: there, trying })
      if (winner && last !== 'none') backoff.wrote(key, winner.digest)
      report(key, losers)
      return true
    } catch (error) {
      const why = reasonOf(error, last)
      if (why) report(key, [winner ? problemOf(winner.item, why) : leftover(target, why), ...losers])
      throw error
    }
  }
}

const contested = {
  reason: 'Contested',
  message: 'another program keeps changing the object: the agent restores it, ever more slowly; stop the other program',
}

async function checkItem({ item }: Wanted, checkRole: CheckRole): Promise<void> {
  const forbidden = forbiddenReason(item)
  if (forbidden !== undefined) throw new AgentProblem('NotAllowed', forbidden)
  if (item.role) await checkRole(item.role.clusterRole)
}

function duplicate({ item }: Wanted, winner: Wanted | undefined): ClusterProblem {
  const { namespace = '', name = '' } = winner?.item.secret?.source ?? {}
  return problemOf(item, {
    reason: 'SecretExists',
    message: `ProjectSecret ${namespace}/${name} is delivered to the same name: deliver one of them under another name`,
  })
}

/** The agent cannot delete an object that nobody wants any more. */
const leftover = ({ ref: { namespace, name } }: Target, why: { reason: string; message: string }): ClusterProblem => ({
  ...(namespace ? { namespace } : {}),
  name,
  ...shortened(why),
})
