// JSON Merge Patch agrees with the examples and the pseudo-code of RFC 7396.
import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { applyMergePatch } from './merge-patch.ts'
import type { Json } from './object.ts'

const plain = (value: Json): unknown => JSON.parse(JSON.stringify(value))

test('every example of RFC 7396, appendix A', () => {
  const examples = [
    ['{"a":"b"}', '{"a":"c"}', '{"a":"c"}'],
    ['{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'],
    ['{"a":"b"}', '{"a":null}', '{}'],
    ['{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'],
    ['{"a":["b"]}', '{"a":"c"}', '{"a":"c"}'],
    ['{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}'],
    ['{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'],
    ['{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}'],
    ['["a","b"]', '["c","d"]', '["c","d"]'],
    ['{"a":"b"}', '["c"]', '["c"]'],
    ['{"a":"foo"}', 'null', 'null'],
    ['{"a":"foo"}', '"bar"', '"bar"'],
    ['{"e":null}', '{"a":1}', '{"e":null,"a":1}'],
    ['[1,2]', '{"a":"b","c":null}', '{"a":"b"}'],
    ['{}', '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'],
  ]
  for (const [document = '', patch = '', result = ''] of examples) {
    assert.deepEqual(plain(applyMergePatch(JSON.parse(document), JSON.parse(patch))), JSON.parse(result), patch)
  }
})

test('__proto__ is an ordinary key, and inherited members are ignored', () => {
  const result = applyMergePatch({}, JSON.parse('{"__proto__":{"polluted":true},"constructor":{"a":1}}'))
  assert.equal(JSON.stringify(result), '{"__proto__":{"polluted":true},"constructor":{"a":1}}')
  assert.equal(({} as { polluted?: boolean }).polluted, undefined)
  assert.equal(
    JSON.stringify(applyMergePatch(JSON.parse('{"__proto__":{"a":1}}'), JSON.parse('{"__proto__":null}'))),
    '{}',
  )
})

/** RFC 7396 §2, literally, on a deep copy. */
function naive(target: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch
  const isMap = typeof target === 'object' && target !== null && !Array.isArray(target)
  const result = new Map(isMap ? Object.entries(target) : [])
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) result.delete(name)
    else result.set(name, naive(result.get(name), value))
  }
  return Object.fromEntries(result)
}

const key = fc.constantFrom('a', 'b', 'c', '__proto__', 'constructor')
const { tree } = fc.letrec<{ tree: Json; leaf: Json }>(tie => ({
  leaf: fc.constantFrom<Json>(null, 1, 'x', true, []),
  tree: fc.oneof(
    { depthSize: 'small' },
    tie('leaf'),
    fc.dictionary(key, tie('tree'), { maxKeys: 4 }),
    fc.array(tie('tree'), { maxLength: 2 }),
  ),
}))

test('merging agrees with the RFC and changes neither document nor patch', () => {
  fc.assert(
    fc.property(tree, tree, (document, patch) => {
      const before = [JSON.stringify(document), JSON.stringify(patch)]
      const result = applyMergePatch(document, patch)
      assert.deepEqual(plain(result), plain(naive(document, patch) as Json))
      assert.deepEqual([JSON.stringify(document), JSON.stringify(patch)], before)
      assert.deepEqual(plain(applyMergePatch(result, patch)), plain(result), 'applying it twice has the same result')
    }),
    { numRuns: 3000 },
  )
})
