// Which traces are recorded, and that callers cannot cause more than a bounded number of them.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openSampler, requestedPerSecond } from './sampling.ts'

const spanId = 'b7ad6b7169203331'
const low = '00000000000000000000000000000001'
const high = 'ffffffffffffffffffffffffffffffff'
const asks = (traceId: string, isSampled = true) => ({ traceId, spanId, isSampled })

/** `random` returns 1, which no ratio selects. */
function open(ratio: number, isParentBased: boolean, random = () => 1) {
  let time = 0
  const sample = openSampler({ ratio, isParentBased }, { now: () => time, random })
  return { sample, pass: (milliseconds: number) => (time += milliseconds) }
}

test('without a caller, the ratio decides by the end of the trace id', () => {
  const half = `0000000000000000${'0'.repeat(2)}80${'0'.repeat(12)}`
  for (const isParentBased of [true, false]) {
    assert.equal(open(1, isParentBased).sample(low, undefined), true)
    assert.equal(open(0, isParentBased).sample(high, undefined), false)
    assert.equal(open(0.5, isParentBased).sample(half, undefined), true)
    assert.equal(open(0.49, isParentBased).sample(half, undefined), false)
  }
})

test('a caller decides about its own trace if the sampler is parent-based', () => {
  assert.equal(open(1, true).sample(high, asks(high, false)), false)
  assert.equal(open(0, true).sample(low, asks(low)), true)
  assert.equal(open(0.1, false).sample(low, asks(low)), false, 'the ratio decides otherwise')
})

test('callers cause at most so many traces per second, by the sampled flag or by a chosen trace id', () => {
  for (const [ratio, isParentBased] of [
    [0.01, true],
    [0.01, false],
    [0, true],
  ] as const) {
    const { sample, pass } = open(ratio, isParentBased)
    const recorded = (requests: number) =>
      Array.from({ length: requests }, () => sample(high, asks(high))).filter(Boolean).length
    assert.equal(recorded(10_000), requestedPerSecond)
    pass(500)
    assert.equal(recorded(10_000), requestedPerSecond / 2)
    pass(3_600_000)
    assert.equal(recorded(10_000), requestedPerSecond, 'an idle hour adds no more')
    pass(-3_600_000)
    assert.equal(recorded(10), 0, 'a clock that goes back adds nothing')
  }
})

test('beyond the limit a request has the same chance as one without a caller', () => {
  const { sample } = open(0.25, true, () => 0.2)
  assert.ok(Array.from({ length: 1000 }, () => sample(high, asks(high))).every(Boolean))
})

test('if everything is recorded, callers cause nothing, and there is no limit', () => {
  const { sample } = open(1, true)
  assert.ok(Array.from({ length: 1000 }, () => sample(high, asks(high))).every(Boolean))
})
