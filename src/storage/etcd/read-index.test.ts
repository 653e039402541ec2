// The confirmation of reads: readers share one until it is sent.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openReadIndex } from './read-index.ts'

/** `answer`: responds to the oldest request that has none. */
function openFakeEtcd() {
  const waiting: (() => void)[] = []
  let sent = 0
  const response = { header: undefined, kvs: [], more: false, count: 0 }
  const readIndex = openReadIndex({
    client: {
      range: () => {
        sent++
        return new Promise(resolve => waiting.push(() => resolve(response)))
      },
    },
    range: { key: Buffer.from('a'), rangeEnd: Buffer.from('b') },
    following: { revision: 1, reach: () => Promise.resolve() },
    heard: () => {},
  })
  return { readIndex, sent: () => sent, answer: () => waiting.shift()?.() }
}

const nextTurn = () => new Promise(setImmediate)

test('reads share a confirmation until it is sent', async () => {
  const { readIndex, sent, answer } = openFakeEtcd()
  const reads = [readIndex.confirm(), readIndex.confirm()]
  while (sent() === 0) await nextTurn()
  answer()
  await Promise.all(reads)
  assert.equal(sent(), 1)
})

test('a read that arrives after a confirmation was sent waits for the next one', async () => {
  const { readIndex, sent, answer } = openFakeEtcd()
  const first = readIndex.confirm()
  while (sent() === 0) await nextTurn()
  let isConfirmed = false
  const second = readIndex.confirm().then(() => {
    isConfirmed = true
  })
  answer()
  await first
  while (sent() === 1) await nextTurn()
  assert.equal(isConfirmed, false)
  answer()
  await second
})
