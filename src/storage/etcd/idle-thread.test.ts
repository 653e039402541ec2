// The wait of confirmations: for the first turn of the event loop without work, and for 5 ms at most.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { whenIdle } from './idle-thread.ts'

/** Each turn of the event loop takes one of these milliseconds. Resolves with the number of turns. */
async function turnsOf(milliseconds: (turn: number) => number): Promise<number> {
  let turn = 0
  let time = 0
  let isIdle = false
  const wait = whenIdle(() => time).then(() => {
    isIdle = true
  })
  while (!isIdle) {
    time += milliseconds(turn++)
    await new Promise(setImmediate)
  }
  await wait
  return turn
}

test('a thread without other work does not wait', async () => {
  assert.equal(await turnsOf(() => 0.01), 1)
})

test('waits until a turn of the event loop has nothing to do', async () => {
  assert.equal(await turnsOf(turn => (turn < 4 ? 0.2 : 0.01)), 5)
})

test('does not wait longer than 5 ms', async () => {
  assert.equal(await turnsOf(() => 1), 5)
})
