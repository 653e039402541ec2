// Checks that all responses fit one order of writes: pure, in O(n log n), because the order is known. Violations are described as text.

import { checkReads } from './check-reads.ts'
import { checkWatches } from './check-watches.ts'
import { show, truthOf } from './merged-history.ts'
import { realTimeOf } from './real-time.ts'
import type { Recording, Violation } from './recording.ts'

const most = 20

export function checkConsistency(recording: Recording): readonly Violation[] {
  const found: Violation[] = []
  const report = (one: Violation) => {
    if (found.length < most) found.push(one)
  }
  const truth = truthOf(recording, report)
  const time = realTimeOf(truth)
  for (const { revision, sight, writer } of truth.facts)
    if (writer && revision <= time.floor(writer.start))
      report({ rule: 'real time', text: `${show(sight)} was requested when ${time.floor(writer.start)} was known` })
  checkReads(recording, truth, time, report)
  checkWatches(recording, truth, report)
  return found
}
