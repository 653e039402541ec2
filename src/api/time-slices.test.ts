// Long work gives way to other requests; many small pieces do not give way to each other.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ownTurn, pauseIfLong } from './time-slices.ts'

function work(milliseconds: number): void {
  const end = performance.now() + milliseconds
  while (performance.now() < end);
}

test('a long piece gives way once its turn is used up', async () => {
  await ownTurn()
  work(12)
  assert.ok(pauseIfLong() instanceof Promise)
})

test('many small pieces of one turn do not get turns of their own', async () => {
  await ownTurn()
  let paused = 0
  for (let piece = 0; piece < 500; piece++) {
    work(0.1)
    if (pauseIfLong()) paused++
  }
  // The machine may interrupt a piece for longer than the limit.
  assert.ok(paused < 50, `${paused} of 500`)
})
