// Writes the rules of every aggregated cluster role into the object, as Kubernetes does, for people to see. The authorizer
// computes them itself.

import { isDeepStrictEqual } from 'node:util'
import type { Json, Resource } from '../api/object.ts'
import type { Resources } from '../api/resources.ts'
import { ownTurn } from '../api/time-slices.ts'
import { shownRules } from '../kinds/aggregation.ts'
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

const message =
  'its rules are larger than 1 MiB, so the object keeps showing earlier ones. Requests are still authorized by the current rules. ' +
  'Let it aggregate less.'

export function startAggregation({ resources, failed }: AggregationOptions): {
  readonly ready: Promise<void>
  idle(): Promise<void>
  stop(): Promise<void>
} {
  const aggregated = new Set<string>()
  /** Those whose rules do not fit into an object. Each is reported once. */
  const tooLarge = new Set<string>()
  const loop = startLoop({
    reconcile: async name => {
      await ownTurn() // the write of a large role has used the current one
      const role = informer.get({ namespace: '', name })
      if (!role?.aggregationRule || role.metadata.deletionTimestamp) return undefined
      const rules = shownRules(role, informer.values()) as Json | undefined
      if (rules) tooLarge.delete(name)
      else if (!tooLarge.has(name)) {
        tooLarge.add(name)
        failed(`aggregating cluster role "${name}"`, new Error(message))
      }
      if (!rules || isDeepStrictEqual(rules, role.rules ?? [])) return undefined
      await resources.update(ClusterRole, { namespace: '', name }, { ...role, rules } as unknown as Json, {
        fieldManager: 'clusterrole-aggregation',
      })
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
      if (!now?.aggregationRule) tooLarge.delete(name)
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
