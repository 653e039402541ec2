// The index of connected clusters by name (D68). It follows the kind Cluster.

import type { Affects } from '../../api/permissions.ts'
import type { Resources } from '../../api/resources.ts'
import { Cluster, type ClusterObject } from '../../kinds/cluster.ts'
import { agentSubject, isAgentSubject } from '../../kinds/cluster-desired.ts'
import type { DeliveryCluster } from '../../kinds/delivery.ts'
import { startInformer } from '../../reconcile/informer.ts'

export type ClusterRecord = DeliveryCluster & {
  readonly gateway: { readonly url?: string | undefined; readonly caBundle?: string | undefined } | undefined
  readonly isDisabled: boolean
  readonly isTerminating: boolean
}

/** As its condition Connected says. */
export type ClusterState = 'connected' | 'disconnected' | 'never_connected' | 'disabled'

export interface ClusterIndex {
  readonly ready: Promise<void>
  get(name: string): ClusterRecord | undefined
  all(): Iterable<ClusterRecord>
  states(): Iterable<ClusterState>
  /** Why a key of an agent is not valid; undefined: it is, or it is another key. */
  problemOf(key: { readonly subject?: string | undefined }): string | undefined
  stop(): void
}

export type ClusterIndexOptions = {
  readonly resources: Resources
  /** Called with whose permissions may have changed. */
  readonly changed: (affects: Affects) => void
  /** Called for every change of a cluster, except of its status. */
  readonly followed: (now: ClusterRecord | undefined, before: ClusterRecord | undefined) => void
  readonly failed: (error: unknown) => void
}

export function openClusterIndex({ resources, changed, followed, failed }: ClusterIndexOptions): ClusterIndex {
  const agents = new Set<string>()
  const informer = startInformer({
    resources,
    kind: Cluster,
    keep: (cluster: ClusterObject) => ({ record: read(cluster), state: stateOf(cluster) }),
    failed,
    changed: (_, kept, old) => {
      const [now, before] = [kept?.record, old?.record]
      if (JSON.stringify(now) === JSON.stringify(before)) return
      const [was, is] = [before && agentSubject(before), now && agentSubject(now)]
      if (was !== undefined) agents.delete(was)
      if (is !== undefined) agents.add(is)
      if (was !== is) changed(caller => caller.username === was || caller.username === is)
      followed(now, before)
    },
  })
  return {
    ready: informer.ready,
    get: name => informer.get({ namespace: '', name })?.record,
    *all() {
      for (const { record } of informer.values()) yield record
    },
    *states() {
      for (const { state } of informer.values()) yield state
    },
    problemOf: ({ subject = '' }) =>
      isAgentSubject(subject) && !agents.has(subject) ? 'the cluster of the agent was deleted' : undefined,
    stop: informer.stop,
  }
}

function read({ metadata, spec = {} }: ClusterObject): ClusterRecord {
  return {
    name: metadata.name ?? '',
    uid: metadata.uid ?? '',
    labels: metadata.labels ?? {},
    projects: spec.projects ?? [],
    gateway: spec.gateway,
    isDisabled: spec.disabled === true,
    isTerminating: metadata.deletionTimestamp !== undefined,
  }
}

const states: { readonly [reason: string]: ClusterState } = {
  Disabled: 'disabled',
  NeverConnected: 'never_connected',
}

function stateOf({ status }: ClusterObject): ClusterState {
  const { status: is, reason = '' } = status?.conditions?.find(({ type }) => type === 'Connected') ?? {}
  if (is === undefined) return 'never_connected'
  return is === 'True' ? 'connected' : (states[reason] ?? 'disconnected')
}
