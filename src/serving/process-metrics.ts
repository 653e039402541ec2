// Metrics of the process: memory, processor time, and the delay of the event loop. Under the names that dashboards for Node know.

import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Metrics } from './metrics.ts'

/** Milliseconds between two measurements of the delay. */
const resolution = 20

export function gaugeProcess(metrics: Metrics): void {
  const started = Date.now() / 1000 - process.uptime()
  metrics.gauge('process_resident_memory_bytes', 'Resident memory in bytes.', () => [[{}, process.memoryUsage.rss()]])
  metrics.readCounter('process_cpu_seconds_total', 'User and system CPU time in seconds.', () => {
    const { user, system } = process.cpuUsage()
    return [[{}, (user + system) / 1e6]]
  })
  metrics.gauge('process_start_time_seconds', 'Start time since the epoch in seconds.', () => [[{}, started]])
  const delay = monitorEventLoopDelay({ resolution })
  delay.enable()
  let p99 = 0
  // The histogram counts the time between two measurements, so the resolution is part of it.
  const secondsOf = (nanoseconds: number) => Math.max(0, nanoseconds / 1e9 - resolution / 1000) || 0
  metrics.gauge(
    'nodejs_eventloop_lag_max_seconds',
    'Longest delay of the event loop since the last scrape, in seconds.',
    () => {
      const max = secondsOf(delay.max)
      p99 = secondsOf(delay.percentile(99))
      delay.reset()
      return [[{}, max]]
    },
  )
  metrics.gauge(
    'nodejs_eventloop_lag_p99_seconds',
    '99th percentile of the delay of the event loop since the last scrape, in seconds.',
    () => [[{}, p99]],
  )
}
