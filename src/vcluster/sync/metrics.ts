// Metrics of the syncer.

import type { ApiError } from '../../api/errors.ts'
import { type Metrics, openMetrics } from '../../serving/metrics.ts'
import type { EndpointSync } from './endpoints-controller.ts'
import type { Left } from './orphans.ts'
import type { OpenSyncOptions } from './sync.ts'

type Observer = OpenSyncOptions['observer']

const fine = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

/** `running` is the syncer that works now; none while another leads. */
export function observeSync(running: () => EndpointSync | undefined): {
  readonly metrics: Metrics
  readonly observer: Omit<Observer, 'failed' | 'trouble'>
  readonly failed: (error: unknown) => void
  readonly trouble: (reason: string) => void
} {
  const metrics = openMetrics()
  const writes = metrics.counter('vcluster_sync_writes_total', 'Writes by side and verb.')
  const errors = metrics.counter('vcluster_sync_errors_total', 'Failures by code; 0 where there was no answer.')
  const troubles = metrics.counter('vcluster_sync_troubles_total', 'Objects that could not be synced, by reason.')
  const lag = metrics.histogram(
    'vcluster_sync_lag_seconds',
    'From a change being seen to the host having it.',
    fine,
  )({})
  const runs = metrics.counter('vcluster_sync_patch_runs_total', 'Patches run.')({})
  const failed = metrics.counter('vcluster_sync_patch_errors_total', 'Patches that failed, by their index.')
  const time = metrics.histogram('vcluster_sync_patch_seconds', 'Time for all patches of an object.', fine)({})
  metrics.gauge('vcluster_sync_objects', 'Endpoint objects by state.', () =>
    [...(running()?.states() ?? [])].map(([state, count]) => [{ state }, count] as const),
  )
  metrics.gauge('vcluster_sync_queue_depth', 'Objects that wait or are worked on.', () => [[{}, running()?.depth ?? 0]])
  metrics.gauge('vcluster_sync_leader', 'Whether this one works.', () => [[{}, running() ? 1 : 0]])
  let left: readonly Left[] = []
  metrics.gauge('vcluster_sync_left_behind', 'Objects on the host that were left behind, by namespace there.', () =>
    running() ? left.map(({ namespace, from, count }) => [{ namespace, from }, count] as const) : [],
  )
  return {
    metrics,
    observer: {
      leftBehind: found => {
        left = found
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
    trouble: reason => troubles({ reason })(1),
  }
}
