// Holds a deleted Cluster until its agent has removed what it created in the cluster (D69), with a finalizer.

import { ApiError, ignoreNotFound } from '../api/errors.ts'
import type { Json, JsonObject } from '../api/object.ts'
import type { Resources } from '../api/resources.ts'
import { agentFinalizer, Cluster, type ClusterObject } from '../kinds/cluster.ts'
import { type Finding, withConditions } from '../kinds/object-conditions.ts'
import { startInformer } from '../reconcile/informer.ts'
import { startLoop } from '../reconcile/work-queue.ts'

export type ClusterCleanupOptions = {
  readonly resources: Resources
  readonly now: () => number
  readonly failed: (what: string, error: unknown) => void
}

export function startClusterCleanup({ resources, now, failed }: ClusterCleanupOptions): {
  readonly ready: Promise<void>
  idle(): Promise<void>
  stop(): Promise<void>
} {
  const loop = startLoop({
    reconcile: async name => {
      const at = { namespace: '', name }
      const cluster = await resources.get(Cluster, at).then(({ object }) => object as ClusterObject, ignoreNotFound)
      const step = cluster ? stepOf(cluster) : 'none'
      if (!cluster || step === 'none') return undefined
      const { uid = '', resourceVersion = '', finalizers = [] } = cluster.metadata
      const precondition = { uid, resourceVersion }
      const body: JsonObject =
        step === 'wait'
          ? {
              metadata: precondition,
              status: withConditions(cluster, [waiting(name)], now()).status as unknown as Json,
            }
          : { metadata: { ...precondition, finalizers: finalizersAfter(finalizers, step) } }
      const options = { fieldManager: 'cluster-cleanup', ...(step === 'wait' ? { subresource: 'status' } : {}) }
      try {
        await resources.patch(Cluster, at, { type: 'merge', body }, options)
      } catch (error) {
        // The informer reports the change that was in the way.
        if (!(error instanceof ApiError) || ![404, 409].includes(error.code)) throw error
      }
      return undefined
    },
    failed: (name, error) => failed(`holding cluster "${name}" for its agent`, error),
  })
  const informer = startInformer({
    resources,
    kind: Cluster,
    keep: object => stepOf(object as ClusterObject),
    changed: ({ name }, step = 'none') => {
      if (step !== 'none') loop.add(name)
    },
    failed: error => failed('watching clusters', error),
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

type Step = 'hold' | 'wait' | 'release' | 'none'

/** A cluster whose agent never reported has nothing to clean up. */
function stepOf({ metadata, status = {} }: ClusterObject): Step {
  const isHeld = metadata.finalizers?.includes(agentFinalizer) === true
  if (metadata.deletionTimestamp === undefined) return status.lastContact && !isHeld ? 'hold' : 'none'
  if (!isHeld) return 'none'
  if (status.cleanedUp || !status.lastContact) return 'release'
  return status.conditions?.some(({ type }) => type === 'CleanedUp') ? 'none' : 'wait'
}

const finalizersAfter = (finalizers: readonly string[], step: 'hold' | 'release'): Json => {
  const others = finalizers.filter(one => one !== agentFinalizer)
  if (step === 'hold') return [...others, agentFinalizer]
  return others.length ? others : null
}

const waiting = (name: string): Finding => ({
  type: 'CleanedUp',
  status: 'False',
  severity: 'Info',
  reason: 'WaitingForAgent',
  message: `the agent removes what it created in the cluster; if the cluster is gone, run: platform disconnect cluster ${name} --keep-cluster`,
})
