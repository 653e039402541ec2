// Writes into every aggregated cluster role the rules it comes to, as Kubernetes does. The authorizer works them out itself:
// what is kept here is for people to see.

import { canonical } from '../api/codec.ts'
import type { Json, Resource } from '../api/object.ts'
import type { Resources } from '../api/resources.ts'
import { aggregatedRules } from '../kinds/aggregation.ts'
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
const given = (role: StoredRole | undefined) =>
  canonical([role?.metadata.labels ?? null, role?.rules ?? null, role?.aggregationRule ?? null] as unknown as Json)

export function startAggregation({ resources, failed }: AggregationOptions): {
  readonly ready: Promise<void>
  idle(): Promise<void>
  stop(): Promise<void>
} {
  const aggregated = new Set<string>()
  const loop = startLoop({
    reconcile: async name => {
      const role = informer.get({ namespace: '', name })
      if (!role?.aggregationRule || role.metadata.deletionTimestamp) return undefined
      const rules = aggregatedRules(role, informer.values()) as unknown as Json
      if (canonical(rules) === canonical((role.rules ?? []) as unknown as Json)) return undefined
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
      if (given(now) !== given(before)) for (const one of aggregated) loop.add(one)
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
