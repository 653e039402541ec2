// Tests that a comparison finds every difference between a copy and its source, and ignores revisions and order.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DifferenceError, openComparison } from './comparison.ts'
import { idOf, type StoredRecord } from './records.ts'

const object = (name: string, revision: number, content = 'x', bucket = 'teams'): StoredRecord => {
  const start = `{"name":"${name}","resourceVersion":"`
  const text = Buffer.from(`${start}${revision}","content":"${content}"}`)
  return [['object', idOf(revision, 0), bucket, 'default', name, 0, start.length, 0], text]
}
const source = [object('a', 1), object('b', 22), [['time', 'id', 5]] as StoredRecord]

async function remembered() {
  const comparison = openComparison()
  const passed: StoredRecord[] = []
  for await (const record of comparison.remember(source)) passed.push(record)
  assert.deepEqual(passed, source)
  return comparison
}

test('a copy with other revisions in another order is equal', async () => {
  const { check } = await remembered()
  await check([[['begin', 9, 9]], [['time', 'id', 5]], object('b', 1000), object('a', 7), [['end', 2]]])
})

test('a missing, new or changed record is a difference', async () => {
  const { check } = await remembered()
  const [a, b, time] = source as [StoredRecord, StoredRecord, StoredRecord]
  const copies: StoredRecord[][] = [
    [a, time],
    [a, b],
    [a, b, time, object('c', 1)],
    [a, object('b', 22, 'y'), time],
    [a, object('b', 22, 'x', 'users'), time],
    [a, b, [['time', 'id', 6]]],
    [a, b, [['time', 'other', 5]]],
  ]
  for (const copy of copies) await assert.rejects(check(copy), DifferenceError)
})
