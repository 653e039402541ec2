// Finding labels by scanning gives the same result as parsing.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { keptBy } from '../../test/support/heap.ts'
import { canonical } from '../api/encode.ts'
import { labelsOf, sharedLabels } from './labels.ts'

const word = fc.constantFrom(
  'metadata',
  'labels',
  'a',
  '"',
  '\\',
  '}',
  '{"labels":{"a":"b"}}',
  'ü',
  '\u{1f600}',
  ',',
  '__proto__',
)
const map = fc.dictionary(word, word, { maxKeys: 4 })
const other = fc.oneof(fc.jsonValue({ maxDepth: 3 }), map, fc.array(word))

test('labels are found at any position in the text', () => {
  const metadata = fc.dictionary(word, fc.oneof(other, map), { maxKeys: 5 })
  const object = fc.dictionary(word, fc.oneof(other, metadata), { maxKeys: 5 })
  fc.assert(
    fc.property(object, object => {
      const text = JSON.stringify(object)
      const parsed = JSON.parse(text) as { metadata?: { labels?: unknown } | null }
      const isPlain = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value)
      const labels =
        isPlain(parsed.metadata) && Object.hasOwn(parsed.metadata ?? {}, 'labels') ? parsed.metadata?.labels : undefined
      const strings = isPlain(labels)
        ? Object.entries(labels ?? {}).filter(([, value]) => typeof value === 'string')
        : []
      assert.deepEqual(Object.entries(labelsOf(Buffer.from(text)) ?? {}), strings)
    }),
    { numRuns: 3000 },
  )
})

test('truncated text and text that is not an object has no labels; only broken labels throw', () => {
  for (const text of [
    '',
    '{',
    '[]',
    '"x"',
    'null',
    '{"metadata"',
    '{"metadata":',
    '{"metadata":{"labels":',
    '{"metadata":{"labels":[]}}',
  ]) {
    assert.equal(labelsOf(Buffer.from(text)), undefined, text)
  }
})

test('large sets of labels are not remembered', async () => {
  const bytes = await keptBy(() => {
    for (let index = 0; index < 100; index++) {
      const labels = Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [`label-${at}-of-${index}`, 'x']))
      labelsOf(Buffer.from(JSON.stringify({ metadata: { labels } })))
    }
  })
  assert.ok(bytes < 1024 * 1024, `${bytes} bytes are kept for 100 sets`)
})

test('labels that the writer knows are the same as those of the text', () => {
  const labels = { b: 'ü"', a: 'x', ['__proto__']: 'y' }
  const text = Buffer.from(canonical({ metadata: { labels } }))
  assert.equal(sharedLabels(labels), labelsOf(text))
  assert.equal(sharedLabels(undefined), undefined)
  assert.equal(sharedLabels({}), undefined)
})
