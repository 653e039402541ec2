// Concurrent requests take turns on the event loop.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openFairness } from './event-loop-fairness.ts'

const loopTurn = () => new Promise(resolve => setImmediate(resolve))

test('while a turn of the event loop is short, requests continue immediately', () => {
  let time = 0
  const turns = openFairness(() => time)
  for (let count = 0; count < 1000; count++) assert.equal(turns(), undefined)
  time = 9
  assert.equal(turns(), undefined)
})

test('after a long turn the waiting requests continue in order, as many per turn as fit into the time slice', async () => {
  let time = 0
  const turns = openFairness(() => time)
  void turns()
  time = 10
  const done: number[] = []
  const one = async (count: number) => {
    await turns()
    // As in the pipeline, the work starts a few promises later.
    await Promise.race([Promise.resolve(), new Promise(() => {})])
    await Promise.resolve()
    done.push(count)
    time += 4
  }
  for (let count = 0; count < 20; count++) void one(count)
  await Promise.resolve()
  assert.deepEqual(done, [])
  let before = 0
  for (let count = 0; count < 40 && done.length < 20; count++) {
    await loopTurn()
    assert.ok(done.length - before <= 8, `${done.length - before} in one turn: after ten milliseconds the rest waits`)
    before = done.length
  }
  assert.deepEqual(done, [...Array(20).keys()])
})

test('every request gets its turn, even if some always wait', async () => {
  let time = 0
  const turns = openFairness(() => time)
  void turns()
  time = 10
  let gone = 0
  // There is always a waiting request.
  for (let count = 0; count < 500; count++) {
    for (let more = 0; more < 10; more++) {
      const turn = turns()
      if (turn) void turn.then(() => gone++)
      else gone++
      time += 4
    }
    await loopTurn()
  }
  for (let count = 0; count < 5000 && gone < 5000; count++) await loopTurn()
  assert.equal(gone, 5000)
})

test('new requests do not overtake waiting ones, and continue immediately once none waits', async () => {
  let time = 0
  const turns = openFairness(() => time)
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
  assert.equal(turns(), undefined, 'a finished turn is not counted')
})
