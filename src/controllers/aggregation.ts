// Writes the rules of every aggregated cluster role into the object for people, as Kubernetes does. The authorizer computes them itself.

import { isDeepStrictEqual } from 'node:util'
import { ApiError } from '../api/errors.ts'
import type { Json, Resource } from '../api/object.ts'
import type { Resources } from '../api/resources.ts'
import { ownTurn } from '../api/time-slices.ts'
import { maxRules, shownRules } from '../kinds/aggregation.ts'
import { ClusterRole, type RoleObject } from '../kinds/rbac.ts'
import { startInformer } from '../reconcile/informer.ts'
import { startLoop } from '../reconcile/work-queue.ts'

export type AggregationOptions = {
  readonly resources: Resources
  readonly failed: (what: string, error: unknown) => void
}

type StoredRole = Resource & RoleObject

const isAggregated = (role: StoredRole | undefined) => role?.aggregationRule !== undefined
/** The labels and rules that aggregated roles depend on. */
const given = (role: StoredRole | undefined) => [role?.metadata.labels, role?.rules, role?.aggregationRule]

const keepsEarlier = 'The object keeps showing earlier rules. Requests are authorized by the current ones.'

export function startAggregation({ resources, failed }: AggregationOptions): {
  readonly ready: Promise<void>
  idle(): Promise<void>
  stop(): Promise<void>
} {
  const aggregated = new Set<string>()
  /** Those whose rules do not fit into an object. Each is reported once. */
  const unshown = new Set<string>()
  const report = (name: string, why: string) => {
    if (!unshown.has(name)) failed(`aggregating cluster role "${name}"`, new Error(`${why}. ${keepsEarlier}`))
    unshown.add(name)
    return undefined
  }
  const loop = startLoop({
    reconcile: async name => {
      await ownTurn() // the write of a large role has used the current one
      const role = informer.get({ namespace: '', name })
      if (!role?.aggregationRule || role.metadata.deletionTimestamp) return undefined
      const rules = shownRules(role, informer.values()) as Json | undefined
      if (!rules) return report(name, `it has more than ${maxRules} rules, or more than 1 MiB; let it aggregate less`)
      if (!isDeepStrictEqual(rules, role.rules ?? [])) {
        const body = { ...role, rules } as unknown as Json
        try {
          await resources.update(ClusterRole, { namespace: '', name }, body, {
            fieldManager: 'clusterrole-aggregation',
          })
        } catch (error) {
          // A role of an earlier version may have a rule that is not valid any more.
          if (error instanceof ApiError && error.status.code === 422) return report(name, error.message)
          throw error
        }
      }
      unshown.delete(name)
      return undefined
    },
    failed: (name, error) => failed(`aggregating cluster role "${name}"`, error),
  })
  const informer = startInformer({
    resources,
    kind: ClusterRole,
    keep: object => object as StoredRole,
    failed: error => failed('watching cluster roles', error),
    changed: ({ name }, now, before) => {
      if (isAggregated(now)) aggregated.add(name)
      else aggregated.delete(name)
      if (!isAggregated(now)) unshown.delete(name)
      if (!isDeepStrictEqual(given(now), given(before))) for (const one of aggregated) loop.add(one)
    },
  })
  return {
    ready: informer.ready,
    idle: loop.idle,
    async stop() {
      informer.stop()
      await loop.stop()
    },
  }
}
