// Paths: the grammar by example, errors with their column, and comparison with a naive implementation.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Json, JsonObject } from '../../api/object.ts'
import { type ConcretePath, matchPath, type Path, PathError, parsePath, showPath } from './path.ts'

const key = (name: string) => ({ key: name })
const index = (number: number) => ({ key: String(number), index: number })
const any = { any: true } as const

test('segments are separated by dots, in brackets or quoted; whitespace is trimmed; the empty path is the whole object', () => {
  const cases: [string, Path][] = [
    ['', []],
    ['  ', []],
    ['metadata.labels.app', [key('metadata'), key('labels'), key('app')]],
    [' metadata . labels ', [key('metadata'), key('labels')]],
    ['metadata.annotations[x.y/z]', [key('metadata'), key('annotations'), key('x.y/z')]],
    ['metadata.annotations["x.y/z"]', [key('metadata'), key('annotations'), key('x.y/z')]],
    ["a[ 'b]' ].c", [key('a'), key('b]'), key('c')]],
    ['a."b.c".d', [key('a'), key('b.c'), key('d')]],
    ['a["\\"\\\\\\u0041\\n"]', [key('a'), key('"\\A\n')]],
    ['subsets[0].addresses[1].ip', [key('subsets'), index(0), key('addresses'), index(1), key('ip')]],
    ['subsets.0', [key('subsets'), index(0)]],
    ['a["0"]', [key('a'), key('0')]],
    ['a[007]', [key('a'), key('007')]],
    ['subsets[*].ports.*', [key('subsets'), any, key('ports'), any]],
    ['a["*"]', [key('a'), key('*')]],
    ['[a][b]', [key('a'), key('b')]],
    ['*', [any]],
  ]
  for (const [text, expected] of cases) assert.deepEqual(parsePath(text), expected, text)
})

test('an invalid path is rejected with its column', () => {
  const cases: [string, number, RegExp][] = [
    ['.a', 1, /empty/],
    ['a..b', 3, /empty/],
    ['a.', 3, /empty/],
    ['a.[b]', 3, /empty/],
    ['a[]', 3, /empty/],
    ['a[""]', 3, /empty/],
    ['a[b', 2, /not closed/],
    ['a["b', 3, /quote is not closed/],
    ['a["b"', 2, /not closed/],
    ['a["b"c]', 6, /expected "\]"/],
    ['a]b', 2, /unexpected "\]"/],
    ['a"b"', 2, /unexpected/],
    ['"a"b', 4, /expected "\."/],
    ['a[0]b', 5, /expected "\." or "\["/],
    ['a[-1]', 3, /negative/],
    ['a.-1', 3, /negative/],
    ['a[b[c]]', 4, /quote the key/],
    ['a["\\x"]', 4, /invalid escape/],
    ['x'.repeat(1025), 1025, /more than 1024/],
    [`${'a.'.repeat(64)}a`, 129, /more than 64/],
  ]
  for (const [text, column, message] of cases)
    assert.throws(
      () => parsePath(text),
      (error: Error) => error instanceof PathError && error.column === column && message.test(error.message),
      text.slice(0, 20),
    )
})

test('context.path has indexes in brackets and quotes special names', () => {
  const cases: [ConcretePath, string][] = [
    [[], ''],
    [['subsets', 0, 'addresses', 1, 'ip'], 'subsets[0].addresses[1].ip'],
    [['metadata', 'annotations', 'x.y/z'], 'metadata.annotations["x.y/z"]'],
    [['data', '0', '*'], 'data["0"]["*"]'],
    [['x y', 'a-b'], '["x y"].a-b'],
  ]
  for (const [path, expected] of cases) assert.equal(showPath(path), expected)
})

const object: JsonObject = {
  metadata: { annotations: { 'x.y/z': 'one', b: 'two' } },
  subsets: [{ addresses: [{ ip: '1' }, { hostname: 'h' }] }, { ports: [{ port: 1 }] }],
  empty: null,
}
const found = (text: string) => matchPath(object, parsePath(text)).matches.map(({ path }) => showPath(path))
const missed = (text: string) =>
  matchPath(object, parsePath(text)).misses.map(({ path, reason }) => `${showPath(path)}: ${reason}`)

test('a wildcard matches every element and entry, and continues after a miss', () => {
  assert.deepEqual(found('subsets[*].addresses[*].ip'), ['subsets[0].addresses[0].ip'])
  assert.deepEqual(found('metadata.annotations.*'), ['metadata.annotations["x.y/z"]', 'metadata.annotations.b'])
  assert.deepEqual(found('empty'), ['empty'])
  assert.deepEqual(found(''), [''])
})

test('a miss reports where matching stopped and why', () => {
  assert.deepEqual(missed('subsets[*].addresses[*].ip'), [
    'subsets[0].addresses[1]: has no "ip"',
    'subsets[1]: has no "addresses"',
  ])
  assert.deepEqual(missed('subsets[7]'), ['subsets: has only 2 elements'])
  assert.deepEqual(missed('subsets.x'), ['subsets: is a list, "x" is not an index'])
  assert.deepEqual(missed('empty.x'), ['empty: is null without fields'])
  assert.deepEqual(missed('metadata.annotations.b.c'), ['metadata.annotations.b: is a string without fields'])
  assert.deepEqual(missed('__proto__.x'), [': has no "__proto__"'])
  assert.deepEqual(missed('subsets.length'), ['subsets: is a list, "length" is not an index'])
})

const name = fc.oneof(
  fc.constantFrom(
    'a',
    'b',
    'metadata',
    'x.y/z',
    '0',
    '1',
    '*',
    '-1',
    '__proto__',
    'constructor',
    'length',
    '"',
    "'",
    '\\',
  ),
  fc.string({ minLength: 1, maxLength: 6, unit: 'binary' }),
)
const { tree } = fc.letrec<{ tree: Json }>(tie => ({
  tree: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(null)),
    fc.array(tie('tree'), { maxLength: 3 }),
    fc.dictionary(name, tie('tree'), { maxKeys: 3, noNullPrototype: false }),
  ),
}))

/** Lists the whole tree, then compares every value with the pattern. */
function naive(object: Json, path: Path): string[] {
  const places: ConcretePath[] = []
  const list = (value: Json, way: ConcretePath) => {
    places.push(way)
    if (Array.isArray(value)) for (let at = 0; at < value.length; at++) list(value[at], [...way, at])
    else if (typeof value === 'object' && value !== null)
      for (const at of Object.keys(value)) list((value as JsonObject)[at] as Json, [...way, at])
  }
  list(object, [])
  const fits = (step: string | number | undefined, at: number) => {
    const segment = path[at]
    if (segment === undefined || step === undefined) return false
    if ('any' in segment) return true
    return typeof step === 'number' ? segment.index === step : segment.key === step
  }
  const hits = places.filter(way => way.length === path.length && way.every(fits))
  return hits.map(way => JSON.stringify(way))
}

test('matchPath agrees with an exhaustive search (3000 cases)', () => {
  const segment = fc.oneof(
    { weight: 2, arbitrary: fc.constant(any) },
    { weight: 1, arbitrary: fc.nat(2).map(index) },
    { weight: 3, arbitrary: name.map(key) },
  )
  fc.assert(
    fc.property(fc.dictionary(name, tree, { maxKeys: 4 }), fc.array(segment, { maxLength: 5 }), (object, path) => {
      const ours = matchPath(object, path).matches.map(one => JSON.stringify(one.path))
      assert.deepEqual(ours, naive(object, path))
    }),
    { numRuns: 3000 },
  )
})

test('showPath of every value finds the same value (2000 cases)', () => {
  fc.assert(
    fc.property(fc.dictionary(name, tree, { minKeys: 1, maxKeys: 3 }), object => {
      for (const shown of naive(object, [any]).concat(naive(object, [any, any]))) {
        const way: ConcretePath = JSON.parse(shown)
        if (way.includes('')) continue
        const { matches } = matchPath(object, parsePath(showPath(way)))
        assert.deepEqual(
          matches.map(one => one.path),
          [way],
          showPath(way),
        )
      }
    }),
    { numRuns: 2000 },
  )
})

test('any text is a path that round-trips, or a PathError with a column within it (5000 cases)', () => {
  const text = fc.oneof(
    fc.string({ unit: fc.constantFrom('a', '0', '.', '[', ']', '*', '"', "'", '\\', ' ', '-', 'u') }),
    fc.string(),
  )
  fc.assert(
    fc.property(text, text => {
      let path: Path
      try {
        path = parsePath(text)
      } catch (error) {
        assert.ok(error instanceof PathError && error.column >= 1 && error.column <= text.length + 1, String(error))
        return
      }
      assert.deepEqual(parsePath(showPath(path)), path)
    }),
    { numRuns: 5000 },
  )
})
