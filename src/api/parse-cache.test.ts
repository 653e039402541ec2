// Caches parsed objects up to a size.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseStored, parseToReplace } from './parse-cache.ts'

const stored = (name: string, size = 0) =>
  new TextEncoder().encode(`{"metadata":{"name":"${name}","annotations":{"x":"${'x'.repeat(size)}"}}}`)

test('parses the same buffer once, and an equal buffer again', () => {
  const bytes = stored('a')
  const object = parseStored(bytes)
  assert.equal(object.metadata.name, 'a')
  assert.equal(parseStored(bytes), object)
  assert.notEqual(parseStored(stored('a')), object)
})

test('evicts the oldest objects, and does not cache very large ones', () => {
  const old = stored('old')
  const before = parseStored(old)
  const many = Array.from({ length: 5000 }, (_, index) => stored(`n${index}`, 1000))
  for (const one of many) parseStored(one)
  assert.notEqual(parseStored(old), before)
  const newest = many.at(-1) as Uint8Array
  assert.equal(parseStored(newest), parseStored(newest))
  const large = stored('large', 100_000)
  assert.notEqual(parseStored(large), parseStored(large))
})

test('an object that a write replaces is shared by the parts of the write, and soon forgotten', () => {
  const bytes = stored('replaced')
  const object = parseToReplace(bytes)
  assert.equal(parseStored(bytes), object)
  assert.equal(parseToReplace(bytes), object)
  for (let index = 0; index < 200; index++) parseToReplace(stored(`n${index}`, 1000))
  assert.notEqual(parseToReplace(bytes), object)
  const read = stored('read')
  const kept = parseStored(read)
  for (let index = 0; index < 200; index++) parseToReplace(stored(`n${index}`, 1000))
  assert.equal(parseToReplace(read), kept)
})
