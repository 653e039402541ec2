// Keeps the room for short-lived objects small, where memory counts for more than the last bit of speed. sync.ts calls it.

import { PerformanceObserver } from 'node:perf_hooks'
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'

const most = 16 * 1024 * 1024

/**
 * V8 lets this room grow to 64 MB while there is much to do, and keeps it when there is not. The setting for it is read
 * when a process starts, before anything of ours runs; whether it grows at all is asked every time.
 */
export function boundYoungGeneration(): void {
  const size = () => getHeapSpaceStatistics().find(space => space.space_name === 'new_space')?.space_size ?? 0
  const look = () => {
    if (size() < most) return
    setFlagsFromString('--semi-space-growth-factor=1')
    observer.disconnect()
  }
  const observer = new PerformanceObserver(look)
  observer.observe({ entryTypes: ['gc'] })
  look()
}
