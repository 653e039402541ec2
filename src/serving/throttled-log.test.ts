// Repeated failures: logged once, then rarely; a different failure is logged at once.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openThrottledLog } from './throttled-log.ts'

test('the same failure is logged immediately, then after one, two, four minutes; another one immediately; a bug with its stack', () => {
  const lines: unknown[] = []
  let time = 0
  const log = {
    warn: (more: object, text: string) => void lines.push([time / 1000, text, more]),
    error: (more: { err: Error }, text: string) => void lines.push([time / 1000, text, more.err.name]),
  }
  const failed = openThrottledLog(log as never, () => time)('asking')
  for (; time <= 180_000; time += 10_000) failed(new Error('away'))
  failed(new Error('refused'))
  failed(new TypeError('x is not a function'))
  time += 61_000
  failed(new TypeError('x is not a function'))
  const text = 'asking failed, retrying'
  assert.deepEqual(lines, [
    [0, `${text}: away`, {}],
    [60, `${text}: away`, { suppressed: 5 }],
    [180, `${text}: away`, { suppressed: 11 }],
    [190, `${text}: refused`, {}],
    [190, text, 'TypeError'],
    [251, text, 'TypeError'],
  ])
})

test('recovery is logged once, with the duration, and only after a logged failure; the next failure is logged at once', () => {
  const lines: string[] = []
  let time = 0
  const say = (text: string) => void lines.push(text)
  const log = { info: say, warn: (_: object, text: string) => say(text) }
  const failed = openThrottledLog(log as never, () => time)('asking')
  failed.worked()
  failed(new Error('away'))
  time += 20_000
  failed(new Error('away'))
  time += 54_000
  failed.worked()
  failed.worked()
  failed(new Error('away'))
  assert.deepEqual(lines, [
    'asking failed, retrying: away',
    'asking recovered after 74 s',
    'asking failed, retrying: away',
  ])
})
