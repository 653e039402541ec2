// Requests that come at once take turns.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openTurns } from './turns.ts'

const loopTurn = () => new Promise(resolve => setImmediate(resolve))

test('while a turn of the event loop is young, everybody goes on at once', () => {
  let time = 0
  const turns = openTurns(() => time)
  for (let count = 0; count < 1000; count++) assert.equal(turns(), undefined)
  time = 9
  assert.equal(turns(), undefined)
})

test('once it has taken too long, the others go on in the order they came, as many a turn as a moment holds', async () => {
  let time = 0
  const turns = openTurns(() => time)
  void turns()
  time = 10
  const done: number[] = []
  for (let count = 0; count < 20; count++)
    void turns()?.then(() => {
      done.push(count)
      time += 4 // each takes so long
    })
  await Promise.resolve()
  assert.deepEqual(done, [])
  const sizes: number[] = []
  for (let count = 0; count < 20 && done.length < 20; count++) {
    await loopTurn()
    sizes.push(done.length)
  }
  assert.deepEqual(done, [...Array(20).keys()])
  assert.deepEqual(sizes.slice(0, 3), [3, 6, 9], 'after ten milliseconds the rest waits')
})

test('who comes while others wait does not overtake them, and when nobody waits everybody goes on at once again', async () => {
  let time = 0
  const turns = openTurns(() => time)
  void turns()
  time = 10
  const waiting = turns()
  time = 0
  assert.ok(turns(), 'it overtook')
  await waiting
  await loopTurn()
  await loopTurn()
  assert.equal(turns(), undefined)
  time = 100
  await loopTurn()
  await loopTurn()
  assert.equal(turns(), undefined, 'a turn that is over counts no more')
})
