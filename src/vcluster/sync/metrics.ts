// Metrics of the syncer.

import type { ApiError } from '../../api/errors.ts'
import { type Metrics, openMetrics } from '../../serving/metrics.ts'
import type { Orphans } from './orphans.ts'
import type { OpenSyncOptions, Syncer } from './sync.ts'

type Observer = OpenSyncOptions['observer']

const fine = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

/** `running` returns the active syncer, or undefined while another instance leads. */
export function observeSync(running: () => Syncer | undefined): {
  readonly metrics: Metrics
  readonly observer: Omit<Observer, 'failed' | 'syncFailure'>
  readonly failed: (error: unknown) => void
  readonly syncFailure: (reason: string) => void
} {
  const metrics = openMetrics()
  const writes = metrics.counter('vcluster_sync_writes_total', 'Writes by side and verb.')
  const errors = metrics.counter('vcluster_sync_errors_total', 'Failures by HTTP status code; 0 without a response.')
  const syncFailures = metrics.counter('vcluster_sync_troubles_total', 'Objects that could not be synced, by reason.')
  const lag = metrics.histogram(
    'vcluster_sync_lag_seconds',
    'Time from observing a change to writing it to the host.',
    fine,
  )({})
  const runs = metrics.counter('vcluster_sync_patch_runs_total', 'Patches executed.')({})
  const failed = metrics.counter('vcluster_sync_patch_errors_total', 'Failed patches by index.')
  const time = metrics.histogram('vcluster_sync_patch_seconds', 'Duration of all patches of an object.', fine)({})
  metrics.gauge('vcluster_sync_objects', 'Endpoint objects by state.', () =>
    [...(running()?.states() ?? [])].map(([state, count]) => [{ state }, count] as const),
  )
  metrics.gauge('vcluster_sync_queue_depth', 'Objects that are queued or in progress.', () => [
    [{}, running()?.depth ?? 0],
  ])
  metrics.gauge('vcluster_sync_leader', 'Whether this instance is the leader.', () => [[{}, running() ? 1 : 0]])
  let orphans: readonly Orphans[] = []
  metrics.gauge('vcluster_sync_left_behind', 'Orphaned objects on the host, by host namespace.', () =>
    running() ? orphans.map(({ namespace, from, count }) => [{ namespace, from }, count] as const) : [],
  )
  return {
    metrics,
    observer: {
      orphaned: found => {
        orphans = found
      },
      wrote: (side, verb) => writes({ side, verb })(1),
      lag,
      patched: ({ trace, problem }, seconds) => {
        runs(trace.length)
        time(seconds)
        if (problem) failed({ patch: String(problem.index) })(1)
      },
    },
    failed: error => errors({ code: String((error as Partial<ApiError>).code ?? 0) })(1),
    syncFailure: reason => syncFailures({ reason })(1),
  }
}
