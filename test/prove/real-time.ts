// The revisions that a request may have observed: not older than those known before it began, not newer than those begun before it ended.

import type { Fact, Truth } from './merged-history.ts'
import type { Recording } from './recording.ts'

/** The highest revision that any client had received before this tick. */
export type Floor = (tick: number) => number

export type RealTime = {
  readonly floor: Floor
  /** Below the lowest revision of a write that began after this tick. */
  ceiling(tick: number): number
}

type Point = readonly [tick: number, revision: number]

export function realTimeOf({ facts, floor }: Truth): RealTime {
  const begun = facts.flatMap(({ revision, begun }): Point[] => (begun === undefined ? [] : [[begun, revision]]))
  begun.sort(byTick)
  const lowest = running(begun.toReversed(), Math.min, Number.POSITIVE_INFINITY).reverse()
  return { floor, ceiling: tick => (lowest[countBefore(begun, tick)] ?? Number.POSITIVE_INFINITY) - 1 }
}

/** `facts`: with the writers that got an acknowledgement. */
export function floorOf(recording: Recording, facts: readonly Fact[]): Floor {
  const known = facts.flatMap(({ revision, writer }): Point[] => (writer ? [[writer.end, revision]] : []))
  for (const { end, seen } of recording.gets) if (seen) known.push([end, seen.version])
  for (const { end, at } of recording.lists) known.push([end, at])
  for (const { told } of recording.sessions) for (const { tick, version } of told) known.push([tick, version])
  known.sort(byTick)
  const highest = running(known, Math.max, recording.from)
  return tick => highest[countBefore(known, tick) - 1] ?? recording.from
}

const byTick = (one: Point, other: Point) => one[0] - other[0]

function running(points: readonly Point[], pick: (one: number, other: number) => number, start: number): number[] {
  let so = start
  return points.map(([, revision]) => {
    so = pick(so, revision)
    return so
  })
}

/** The number of points before a tick. */
function countBefore(points: readonly Point[], tick: number): number {
  let low = 0
  let high = points.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((points[middle] as Point)[0] < tick) low = middle + 1
    else high = middle
  }
  return low
}
