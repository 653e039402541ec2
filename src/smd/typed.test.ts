// Typed values: their fields, comparison, merge and validation.
// Long because of its tables of cases.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { Json, JsonObject } from '../api/object.ts'
import { compareTyped, isEqual, isNoChange } from './compare.ts'
import { difference, type FieldSet, isEmpty, pathsOf, union } from './field-set.ts'
import { mergeTyped } from './merge.ts'
import { printPath } from './path-element.ts'
import { fitToSchema, removeFields, withNamedFields } from './remove.ts'
import { type FieldSchema, shapeOf } from './schema.ts'
import { fieldsOf, problemsOf, TypedError } from './typed.ts'

const text: FieldSchema = { type: 'string' }
const number: FieldSchema = { type: 'integer' }
const item: FieldSchema = {
  type: 'object',
  properties: {
    name: text,
    protocol: { ...text, default: 'TCP' },
    value: number,
    tags: { type: 'array', items: text, 'x-kubernetes-list-type': 'set' },
  },
}
const schema: FieldSchema = {
  type: 'object',
  properties: {
    text,
    number,
    flag: { type: 'boolean' },
    any: {},
    free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    labels: { type: 'object', additionalProperties: text },
    maps: { type: 'object', additionalProperties: { type: 'object', additionalProperties: text } },
    struct: { type: 'object', properties: { a: text, b: number } },
    whole: { type: 'object', properties: { a: text, b: number }, 'x-kubernetes-map-type': 'atomic' },
    list: { type: 'array', items: text },
    set: { type: 'array', items: { type: ['string', 'number'] }, 'x-kubernetes-list-type': 'set' },
    items: { type: 'array', items: item, 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] },
    ports: {
      type: 'array',
      items: item,
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name', 'protocol'],
    },
  },
}
const shape = shapeOf(schema)
const names = (set: FieldSet): string => pathsOf(set).map(printPath).sort().join(' ')
const same = (actual: unknown, expected: unknown) =>
  assert.deepEqual(JSON.parse(JSON.stringify(actual)), JSON.parse(JSON.stringify(expected)))

describe('the fields of a value', () => {
  const cases: [value: Json, fields: string][] = [
    [{ text: 'a', number: 1 }, '.number .text'],
    [{ labels: { x: '1', y: '2' } }, '.labels.x .labels.y'],
    [{ labels: {} }, '.labels'],
    [{ struct: { a: 'x' } }, '.struct.a'],
    [{ struct: {} }, '.struct'],
    [{ struct: null }, '.struct'],
    [{ whole: { a: 'x', b: 1 } }, '.whole'],
    [{ list: ['a', 'b'] }, '.list'],
    [{ set: ['b', 'a', 1] }, '.set[="a"] .set[="b"] .set[=1]'],
    [{ set: [] }, ''],
    [{ items: [{ name: 'a', value: 1 }] }, '.items[name="a"] .items[name="a"].name .items[name="a"].value'],
    [{ items: [{ name: 'a', tags: ['t'] }] }, '.items[name="a"] .items[name="a"].name .items[name="a"].tags[="t"]'],
    [{ ports: [{ name: 'a' }] }, '.ports[name="a",protocol="TCP"] .ports[name="a",protocol="TCP"].name'],
    [{ set: ['a', 'a', 'b'] }, '.set[="a"] .set[="b"]'],
    [
      {
        items: [
          { name: 'a', value: 1 },
          { name: 'a', value: 2 },
        ],
      },
      '.items[name="a"]',
    ],
    [{ maps: { a: { b: 'x' } } }, '.maps.a .maps.a.b'],
    [{ free: { a: { b: [1] }, c: 1 } }, '.free.a .free.a.b .free.c'],
    [{ any: [1, { a: 1 }] }, '.any'],
  ]
  for (const [value, fields] of cases) {
    it(`${JSON.stringify(value)} has ${fields || 'none'}`, () => assert.equal(names(fieldsOf(shape, value)), fields))
  }
})

describe('a comparison', () => {
  const cases: [before: Json, after: Json, removed: string, modified: string, added: string][] = [
    [{ text: 'a' }, { text: 'a' }, '', '', ''],
    [{ text: 'a' }, { text: 'b' }, '', '.text', ''],
    [{ text: 'a' }, { number: 1 }, '.text', '', '.number'],
    [{}, { struct: { a: 'x' } }, '', '', '.struct .struct.a'],
    [{ struct: { a: 'x' } }, {}, '.struct .struct.a', '', ''],
    [{ struct: { a: 'x' } }, { struct: {} }, '.struct.a', '', ''],
    [{ struct: null }, { struct: {} }, '', '.struct', ''],
    [{ labels: { x: '1' } }, { labels: { x: '2', y: '1' } }, '', '.labels.x', '.labels.y'],
    [{ list: ['a', 'b'] }, { list: ['b', 'a'] }, '', '.list', ''],
    [{ set: ['a', 'b'] }, { set: ['b', 'a'] }, '', '', ''],
    [{ set: ['a', 'b'] }, { set: ['b', 'c'] }, '.set[="a"]', '', '.set[="c"]'],
    [{ items: [{ name: 'a', value: 1 }] }, { items: [{ name: 'a', value: 2 }] }, '', '.items[name="a"].value', ''],
    [{ whole: { a: 'x' } }, { whole: { a: 'x', b: 1 } }, '', '.whole', ''],
    [{ free: { a: { b: 1 } } }, { free: { a: 1 } }, '.free.a.b', '.free.a', ''],
    [{ free: { a: 1 } }, { free: { a: { b: 1 } } }, '', '.free.a', '.free.a.b'],
    [{ set: ['a'] }, { set: ['a', 'a'] }, '.set[="a"]', '', '.set[="a"]'],
    [{ set: ['a', 'a'] }, { set: ['a', 'a', 'a'] }, '', '.set[="a"]', ''],
  ]
  for (const [before, after, removed, modified, added] of cases) {
    it(`of ${JSON.stringify(before)} with ${JSON.stringify(after)}`, () => {
      const change = compareTyped(shape, before, after)
      assert.deepEqual([names(change.removed), names(change.modified), names(change.added)], [removed, modified, added])
    })
  }
})

describe('a merge', () => {
  const sets: [live: string, config: string, merged: string][] = [
    ['abc', 'cdef', 'abcdef'],
    ['cdef', 'ace', 'acdef'],
    ['abcgf', 'cdef', 'abcgdef'],
    ['abcd', 'defa', 'bcdefa'],
    ['cagf', 'cfag', 'cfag'],
    ['abcxyz', 'def', 'abcxyzdef'],
    ['cdefghij', '2h3e4kl', 'cdfg2hij3e4kl'],
    ['abb', 'c', 'abbc'],
    ['abb', 'b', 'ab'],
    ['abcdec', '1b2ced', 'a1b2ced'],
    ['aabb', '', 'aabb'],
    ['zma', 'bm', 'zbma'],
  ]
  for (const [live, config, merged] of sets) {
    it(`of the set ${live} with ${config || 'nothing'} is ${merged}`, () =>
      same(mergeTyped(shape, { set: [...live] }, { set: [...config] }), { set: [...merged] }))
  }
  const cases: [live: Json, config: Json, merged: Json][] = [
    [{ text: 'a', number: 1 }, { text: 'b' }, { text: 'b', number: 1 }],
    [{ labels: { x: '1' } }, { labels: { y: '2' } }, { labels: { x: '1', y: '2' } }],
    [{ whole: { a: 'x' } }, { whole: { b: 1 } }, { whole: { b: 1 } }],
    [{ list: ['a'] }, { list: [] }, { list: [] }],
    [{ struct: { a: 'x' } }, { struct: null }, { struct: { a: 'x' } }],
    [{ struct: {} }, { struct: null }, { struct: null }],
    [
      { items: [{ name: 'a', value: 1 }] },
      { items: [{ name: 'b' }, { name: 'a', tags: ['t'] }] },
      { items: [{ name: 'b' }, { name: 'a', value: 1, tags: ['t'] }] },
    ],
    [{ free: { a: { b: 1 } } }, { free: { a: [1] } }, { free: { a: [1] } }],
    [
      { ports: [{ name: 'a', protocol: 'TCP', value: 1 }] },
      { ports: [{ name: 'a', value: 2 }] },
      { ports: [{ name: 'a', protocol: 'TCP', value: 2 }] },
    ],
  ]
  for (const [live, config, merged] of cases) {
    it(`of ${JSON.stringify(live)} with ${JSON.stringify(config)}`, () => same(mergeTyped(shape, live, config), merged))
  }
})

describe('invalid values have the messages of Kubernetes', () => {
  const cases: [value: Json, message: string][] = [
    [{ text: 1 }, '.text: expected string, got &value.valueUnstructured{Value:1}'],
    [{ number: 'x' }, '.number: expected numeric (int or float), got string'],
    [{ flag: 'yes' }, '.flag: expected boolean, got &{yes}'],
    [{ struct: [1, 'a'] }, '.struct: expected map, got &{[1 a]}'],
    [{ list: { b: 1, a: 'x' } }, '.list: expected list, got &{map[a:x b:1]}'],
    [{ list: ['a', true] }, '.list[1]: expected string, got &value.valueUnstructured{Value:true}'],
    [{ bogus: 1 }, '.bogus: field not declared in schema'],
    [{ labels: { x: 1 } }, '.labels.x: expected string, got &value.valueUnstructured{Value:1}'],
    [{ items: [{ name: 'a', value: 'x' }] }, '.items[name="a"].value: expected numeric (int or float), got string'],
    [{ items: [null] }, '.items: element 0: associative list with keys may not have a null element'],
    [{ items: ['a'] }, '.items: element 0: associative list with keys may not have non-map elements'],
    [{ set: [null] }, ".set: element 0: associative list without keys has an element that's an explicit null"],
    [{ set: [{}] }, ".set: element 0: associative list without keys has an element that's a map type"],
    [{ set: ['a', 'a'] }, '.set: duplicate entries for key [="a"]'],
    [
      { text: 1, number: 'x' },
      'errors:\n  .text: expected string, got &value.valueUnstructured{Value:1}\n  .number: expected numeric (int or float), got string',
    ],
    ['x', 'expected map, got &{x}'],
  ]
  for (const [value, message] of cases) {
    it(message, () => assert.equal(new TypedError(problemsOf(shape, value, { repeats: false })).message, message))
  }
  it('stored objects may have duplicate items', () =>
    assert.deepEqual(problemsOf(shape, { set: ['a', 'a'] }, { repeats: true }), []))
})

describe('removing fields', () => {
  const value = {
    struct: { a: 'x', b: 1 },
    set: ['a', 'b'],
    items: [{ name: 'a', value: 1 }, { name: 'b' }],
    labels: { x: '1' },
  }
  const remove = (gone: Json) => removeFields(shape, value, fieldsOf(shape, gone), { hollow: true })
  it('takes out fields, items and keys', () => {
    same(remove({ struct: { a: '' }, set: ['b'], labels: { x: '' } }), {
      ...value,
      struct: { b: 1 },
      set: ['a'],
      labels: {},
    })
    same(remove({ items: [{ name: 'a' }] }), { ...value, items: [{ name: 'b' }] })
  })
  it('adds the declared fields on the way', () => {
    assert.equal(
      names(withNamedFields(fieldsOf(shape, { struct: { a: 'x' }, labels: { x: '1' } }), shape)),
      '.labels .labels.x .struct .struct.a',
    )
  })
  it('owns newly atomic fields as a whole', () => {
    const before = fieldsOf(
      shapeOf({ ...schema, properties: { ...schema.properties, whole: schema.properties!['struct']! } }),
      { whole: { a: 'x' }, text: 't' },
    )
    assert.equal(names(before), '.text .whole.a')
    assert.equal(names(fitToSchema(before, shape)), '.text .whole')
  })
})

const key = fc.constantFrom('a', 'b', '__proto__', 'constructor', 'toString')
const value = fc.record(
  {
    text: fc.constantFrom('x', 'y'),
    number: fc.nat(2),
    labels: fc.dictionary(key, fc.constantFrom('1', '2')),
    maps: fc.dictionary(key, fc.dictionary(key, fc.constantFrom('1', '2'))),
    struct: fc.record({ a: fc.constantFrom('x', 'y'), b: fc.nat(2) }, { requiredKeys: [] }),
    whole: fc.record({ a: fc.constantFrom('x', 'y') }, { requiredKeys: [] }),
    list: fc.array(fc.constantFrom('a', 'b'), { maxLength: 3 }),
    set: fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd', 1, 2), { maxLength: 5 }),
    items: fc.uniqueArray(
      fc.record(
        { name: fc.constantFrom('a', 'b', 'c'), value: fc.nat(2), tags: fc.uniqueArray(fc.constantFrom('x', 'y')) },
        { requiredKeys: ['name'] },
      ),
      { selector: one => one.name, maxLength: 3 },
    ),
    free: fc.dictionary(key, fc.jsonValue({ maxDepth: 2 })),
  },
  { requiredKeys: [] },
) as unknown as fc.Arbitrary<JsonObject>
const runs = { numRuns: 2000 }

describe('the laws of typed values', () => {
  it('merging a value with itself changes nothing', () => {
    fc.assert(
      fc.property(value, one => {
        assert.ok(isEqual(mergeTyped(shape, one, one), one))
        assert.ok(isNoChange(compareTyped(shape, one, structuredClone(one))))
        assert.deepEqual(problemsOf(shape, one, { repeats: false }), [])
      }),
      runs,
    )
  })

  it('a merge has the fields of both, and a repeated apply changes nothing', () => {
    fc.assert(
      fc.property(value, value, (live, config) => {
        const { free: _, ...typed } = live
        const merged = mergeTyped(shape, typed, config)
        const ends = (one: Json) => pathsOf(fieldsOf(shape, one)).map(printPath)
        const all = new Set(ends(merged))
        const hollow = new Set(
          ends(config)
            .concat(ends(typed))
            .filter(path => ['.labels', '.struct', '.maps'].includes(path) || path.startsWith('.maps.')),
        )
        for (const path of ends(typed).concat(ends(config))) assert.ok(all.has(path) || hollow.has(path), path)
        assert.ok(isEqual(mergeTyped(shape, merged, config), merged))
        assert.ok(isEmpty(compareTyped(shape, typed, merged).removed))
      }),
      runs,
    )
  })

  it('a reverse comparison swaps added and removed fields', () => {
    fc.assert(
      fc.property(value, value, (before, after) => {
        const { free: _, ...left } = before
        const { free: __, ...right } = after
        const there = compareTyped(shape, left, right)
        const back = compareTyped(shape, right, left)
        assert.equal(names(there.added), names(back.removed))
        assert.equal(names(there.removed), names(back.added))
        assert.equal(names(there.modified), names(back.modified))
        const changed = union(there.added, there.modified)
        assert.ok(
          isEmpty(difference(fieldsOf(shape, right), union(changed, withNamedFields(fieldsOf(shape, left), shape)))),
        )
      }),
      runs,
    )
  })

  it('removing every field leaves nothing', () => {
    fc.assert(
      fc.property(value, one => {
        const rest = removeFields(shape, one, withNamedFields(fieldsOf(shape, one), shape), { hollow: true })
        for (const left of Object.values(rest as JsonObject)) assert.deepEqual(left, [])
      }),
      runs,
    )
  })
})
