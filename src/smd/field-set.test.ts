// Field sets follow the laws of sets, and survive a round trip through FieldsV1.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { JsonObject } from '../api/object.ts'
import * as sets from './field-set.ts'
import { readFieldsV1, writeFieldsV1 } from './fields-v1.ts'
import { fieldElement, keyElement, printPath, readElement, valueElement } from './path-element.ts'

const name = fc.oneof(fc.constantFrom('a', 'b', 'c', '__proto__', 'constructor', '.', ''), fc.string({ maxLength: 4 }))
const scalar = fc.oneof(
  fc.string({ maxLength: 3 }),
  fc.integer(),
  fc.boolean(),
  fc.constantFrom(0.5, 'a"', '\\', 'ü', '<'),
)
const element = fc.oneof(
  { weight: 5, arbitrary: name.map(fieldElement) },
  { weight: 2, arbitrary: scalar.map(valueElement) },
  { weight: 2, arbitrary: fc.dictionary(name, scalar, { minKeys: 1, maxKeys: 2 }).map(keyElement) },
  { weight: 1, arbitrary: fc.nat(9).map(index => `i:${index}`) },
)
const path = fc.array(element, { minLength: 1, maxLength: 4 })
const paths = fc.array(path, { maxLength: 12 })
const runs = { numRuns: 2000 }

const text = (one: sets.FieldPath): string => JSON.stringify(one)
const texts = (set: sets.FieldSet): string[] => sets.pathsOf(set).map(text).sort()
const naive = (list: sets.FieldPath[]): Set<string> => new Set(list.map(text))
const parse = (one: string): string[] => JSON.parse(one)

describe('a set of fields', () => {
  it('behaves as a set of paths under union, difference and intersection', () => {
    fc.assert(
      fc.property(paths, paths, (left, right) => {
        const [a, b] = [sets.fieldSetOf(left), sets.fieldSetOf(right)]
        const [x, y] = [naive(left), naive(right)]
        assert.deepEqual(texts(a), [...x].sort())
        assert.deepEqual(texts(sets.union(a, b)), [...new Set([...x, ...y])].sort())
        assert.deepEqual(texts(sets.difference(a, b)), [...x].filter(one => !y.has(one)).sort())
        assert.deepEqual(texts(sets.intersection(a, b)), [...x].filter(one => y.has(one)).sort())
        assert.equal(sets.isSameSet(a, b), x.size === y.size && [...x].every(one => y.has(one)))
        assert.equal(
          sets.isEmpty(sets.difference(a, b)),
          [...x].every(one => y.has(one)),
        )
        for (const one of left) assert.ok(sets.has(a, one))
        for (const one of right) assert.equal(sets.has(a, one), x.has(text(one)))
      }),
      runs,
    )
  })

  it('knows its leaves', () => {
    const startsWith = (longer: string[], shorter: string[]) => shorter.every((step, at) => longer[at] === step)
    fc.assert(
      fc.property(paths, left => {
        const set = sets.fieldSetOf(left)
        const ends = [...naive(left)].filter(
          one => !left.some(other => other.length > parse(one).length && startsWith(other, parse(one))),
        )
        assert.deepEqual(texts(sets.leaves(set)), ends.sort())
      }),
      runs,
    )
  })

  it('does not change its operands, and returns them when nothing changes', () => {
    fc.assert(
      fc.property(paths, paths, (left, right) => {
        const [a, b] = [sets.fieldSetOf(left), sets.fieldSetOf(right)]
        const before = texts(a)
        sets.union(a, b)
        sets.difference(a, b)
        sets.intersection(a, b)
        assert.deepEqual(texts(a), before)
        assert.equal(sets.difference(a, sets.difference(b, a)), a)
      }),
      runs,
    )
  })
})

describe('FieldsV1', () => {
  it('survives a round trip through JSON with any order of keys', () => {
    const backwards = (fields: JsonObject): JsonObject =>
      Object.fromEntries(
        Object.entries(fields)
          .reverse()
          .map(([key, value]) => [key, backwards(value as JsonObject)]),
      )
    fc.assert(
      fc.property(paths, list => {
        const set = sets.fieldSetOf(list)
        const written = JSON.stringify(writeFieldsV1(set))
        const read = readFieldsV1(JSON.parse(written))
        assert.ok(sets.isSameSet(read, set))
        assert.equal(JSON.stringify(writeFieldsV1(read)), written)
        assert.equal(JSON.stringify(writeFieldsV1(readFieldsV1(backwards(JSON.parse(written))))), written)
      }),
      runs,
    )
  })

  const cases: [title: string, fields: string, paths: string[]][] = [
    ['nothing', '{}', []],
    ['a leaf', '{"f:a":{}}', ['.a']],
    ['a parent that is not owned', '{"f:a":{"f:b":{}}}', ['.a.b']],
    ['a parent that is', '{"f:a":{".":{},"f:b":{}}}', ['.a', '.a.b']],
    [
      'values, numbers before strings before booleans',
      '{"v:1":{},"v:2":{},"v:10":{},"v:\\"a\\"":{},"v:true":{}}',
      ['[=1]', '[=2]', '[=10]', '[="a"]', '[=true]'],
    ],
    ['keys in their order', '{"k:{\\"a\\":1,\\"b\\":\\"x\\"}":{"f:b":{}}}', ['[a=1,b="x"].b']],
    ['indexes', '{"i:1":{},"i:10":{}}', ['[1]', '[10]']],
    [
      'fields, then keys, then values, then indexes',
      '{"f:z":{},"k:{\\"a\\":1}":{},"v:1":{},"i:0":{}}',
      ['.z', '[a=1]', '[=1]', '[0]'],
    ],
    ['leaves before nested paths', '{"f:a":{"f:b":{}},"f:c":{}}', ['.c', '.a.b']],
  ]
  for (const [title, fields, expected] of cases) {
    it(`spells ${title}`, () => {
      const set = readFieldsV1(JSON.parse(fields))
      assert.deepEqual(sets.pathsOf(set).map(printPath), expected)
      assert.equal(JSON.stringify(writeFieldsV1(set)), fields)
    })
  }

  it('has one spelling for each element', () => {
    assert.equal(readElement('k:{ "b" : 2, "a":1.0 }'), 'k:{"a":1,"b":2}')
    assert.equal(readElement('v:"\\u0061"'), 'v:"a"')
    assert.equal(readElement('i:007'), 'i:7')
  })

  it('drops unknown elements, and treats a node without others as a leaf', () => {
    assert.equal(JSON.stringify(writeFieldsV1(readFieldsV1({ 'f:a': { 'x:b': {} }, 'y:c': {} }))), '{"f:a":{}}')
  })

  for (const bad of ['{"a":{}}', '{"":{}}', '{"v:{":{}}', '{"k:1":{}}', '{"i:x":{}}', '{"f:a":1}', '{"f:a":[]}']) {
    it(`rejects ${bad}`, () => assert.throws(() => readFieldsV1(JSON.parse(bad)), SyntaxError))
  }

  it('rejects excessive nesting', () => {
    const deep = JSON.parse(`${'{"f:a":'.repeat(5000)}{}${'}'.repeat(5000)}`)
    assert.throws(() => readFieldsV1(deep), /nested too deeply/)
  })
})
