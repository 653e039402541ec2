// Metrics that are computed when scraped: the store, requests in progress, and the process.

import type { ClusterState } from '../auth/authn/cluster-index.ts'
import { kinds } from '../kinds/index.ts'
import type { InflightLimits } from '../serving/inflight-limits.ts'
import type { Labels, Metrics } from '../serving/metrics.ts'
import { gaugeProcess } from '../serving/process-metrics.ts'
import type { UnknownKeyLimiter } from '../serving/unknown-key-limiter.ts'
import type { Replicas } from '../storage/storage.ts'
import type { Store } from '../storage/store.ts'

type Sources = {
  readonly store: Store
  readonly isLeader: () => boolean
  readonly replicas?: Replicas | undefined
  readonly limits: InflightLimits
  readonly guard: UnknownKeyLimiter
  /** Expiry in milliseconds of the keys that somebody has to renew. */
  readonly renewals: () => Iterable<number>
  readonly clusterStates: () => Iterable<ClusterState>
  readonly now: () => number
}

const hour = 3600 * 1000
/** A fixed number of series, however many keys there are. */
const horizons = [24, 168, 720]

export function gaugeApiServer(metrics: Metrics, sources: Sources): void {
  const { store, isLeader, replicas, limits, guard, renewals, clusterStates, now } = sources
  metrics.gauge('apiserver_storage_objects', 'Stored objects by resource.', () =>
    kinds.filter(kind => kind.stored).map(kind => [{ resource: kind.id }, store.count(kind.id)]),
  )
  metrics.gauge('apiserver_current_inflight_requests', 'Requests in flight, by kind.', () => [
    [{ request_kind: 'readOnly' }, limits.current.read],
    [{ request_kind: 'mutating' }, limits.current.write],
  ])
  metrics.gauge('apiserver_longrunning_requests', 'Open watches.', () => [[{ verb: 'WATCH' }, limits.current.watch]])
  metrics.readCounter('platform_requests_refused_total', 'Requests rejected with 429, by reason.', () => [
    [{ reason: 'full' }, limits.stats.full],
    [{ reason: 'share' }, limits.stats.share],
    [{ reason: 'rate' }, limits.stats.rate],
    [{ reason: 'unknown_keys' }, guard.stats.refused],
  ])
  metrics.readCounter('platform_unknown_keys_total', 'Requests with an unknown key.', () => [[{}, guard.stats.failed]])
  metrics.gauge(
    'platform_access_keys_expiring',
    'Valid access keys that expire within this time. Without keys that live for less than a day or that their use extends.',
    () => {
      const left = [...renewals()].map(end => end - now())
      return horizons.map(hours => [{ within: `${hours}h` }, left.filter(one => one <= hours * hour).length])
    },
  )
  metrics.gauge(
    'platform_access_key_next_expiry_timestamp_seconds',
    'Expiry of the access key of platform_access_keys_expiring that expires first, since the epoch in seconds.',
    () => {
      let next = Number.POSITIVE_INFINITY
      for (const end of renewals()) next = Math.min(next, end)
      return next === Number.POSITIVE_INFINITY ? [] : [[{}, next / 1000]]
    },
  )
  metrics.gauge('platform_leader', 'Whether this replica runs the controllers: 1 or 0.', () => [
    [{}, isLeader() ? 1 : 0],
  ])
  metrics.gauge('platform_replicas', 'Replicas that run, with this one.', () => [
    [{}, 1 + (replicas?.others().filter(({ isRunning }) => isRunning).length ?? 0)],
  ])
  metrics.gauge('platform_store_revision', 'Newest revision of the store.', () => [[{}, store.revision]])
  metrics.gauge(
    'platform_store_failing',
    'Whether the store cannot write, or its reads may be outdated: 1 or 0.',
    () => [[{}, store.failure === undefined ? 0 : 1]],
  )
  metrics.gauge('platform_store_outdated', 'Whether reads may miss changes of other replicas: 1 or 0.', () => [
    [{}, store.outdated === undefined ? 0 : 1],
  ])
  metrics.gauge('platform_clusters', 'Clusters by state: connected, disconnected, never_connected or disabled.', () =>
    countStates(clusterStates()),
  )
  gaugeProcess(metrics)
}

/** A fixed number of series, however many clusters there are. */
function countStates(states: Iterable<ClusterState>): (readonly [Labels, number])[] {
  const counts = { connected: 0, disconnected: 0, never_connected: 0, disabled: 0 }
  for (const state of states) counts[state]++
  return Object.entries(counts).map(([state, count]) => [{ state }, count] as const)
}
