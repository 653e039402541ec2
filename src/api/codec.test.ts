// Bodies are decoded from JSON and YAML, and encoded as canonical JSON or as kubectl's YAML (D4).

import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { parse } from 'yaml'
import { cpuMilliseconds } from '../../test/support/cpu-time.ts'
import { canonical, decode, writeYaml } from './codec.ts'
import { DecodeError, readJson } from './json-reader.ts'
import type { Json } from './object.ts'
import { decodeYaml } from './yaml-codec.ts'
import { readYaml } from './yaml-reader.ts'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const plain = (value: Json): unknown => JSON.parse(JSON.stringify(value))

test('duplicate keys have the warnings of Kubernetes', () => {
  assert.deepEqual(decode(bytes('{"spec":{"a":1,"a":2}}')).duplicates, ['duplicate field "spec.a"'])
  assert.deepEqual(decodeYaml(bytes('spec:\n  a: 1\n  a: 2\n')).duplicates, ['line 3: key "a" already set in map'])
})

test('accepts a byte order mark, rejects invalid UTF-8 with its position', () => {
  for (const read of [decode, decodeYaml]) {
    assert.deepEqual(plain(read(bytes('\ufeff{"a":1}')).value), { a: 1 })
    const broken = new Uint8Array([...bytes('{"a":\n"é'), 0xff, 0x22, 0x7d])
    assert.throws(() => read(broken), new DecodeError('the text is not valid UTF-8', 2, 3))
    assert.throws(() => read(new Uint8Array([0xed, 0xa0, 0x80])), DecodeError)
  }
})

test('rejects YAML sent as JSON', () => {
  assert.throws(() => decode(bytes('a: 1')), DecodeError)
  assert.throws(() => decode(bytes('')), DecodeError)
})

test('canonical JSON sorts keys, drops undefined members and keeps the order of lists', () => {
  assert.equal(canonical({ b: [2, 1], a: { d: null, c: 'x' } }), '{"a":{"c":"x","d":null},"b":[2,1]}')
  assert.equal(canonical({ a: undefined, b: 1 } as unknown as Json), '{"b":1}')
  assert.equal(canonical({ 10: 1, 9: 2, a: 3 }), '{"10":1,"9":2,"a":3}')
  for (const value of [null, true, 0, -0, 1.5, 1e21, '', '"', '\u2028', '\ud800', [], {}])
    assert.equal(canonical(value), JSON.stringify(value))
})

const isKept = (number: number): boolean => Math.abs(number) <= 2 ** 53 || Math.abs(number) >= 1e21
const number = fc
  .oneof(fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }).filter(isKept))
  .map(value => value + 0)
const tricky = fc.constantFrom(
  'y',
  'Y',
  'n',
  'no',
  'No',
  'off',
  'on',
  'true',
  'TRUE',
  'null',
  'Null',
  '~',
  '',
  '0777',
  '0o7',
  '0x1F',
  '0b1',
  '1e3',
  '1_000',
  '12:30:45',
  '.5',
  '.',
  '..',
  '...',
  '---',
  '--- a',
  '.inf',
  '-.inf',
  '.nan',
  '+1',
  '-1',
  '-',
  '- a',
  '-a',
  '? a',
  '?',
  ': a',
  'a: b',
  'a:',
  ':a',
  'a #b',
  '#a',
  '2024-01-01',
  '2024-01-01T00:00:00Z',
  '=',
  '<<',
  '*',
  '&a',
  '!a',
  '|',
  '>',
  '%a',
  '@a',
  '`a',
  '"a"',
  "'a'",
  '{a}',
  '[a]',
  'a,b',
  'a\nb',
  'a\n',
  'a\n\n',
  '\n',
  '\na',
  ' a\nb',
  'a \nb',
  'a\n b\n',
  'a\tb\n',
  '\ta',
  'a\r\nb',
  ' a',
  'a ',
  '\u0085',
  '\u2028',
  '\ufeff',
  '\u00a0',
  '\ud800',
  '\0',
  '\u007f',
  '😀',
  'é',
  '__proto__',
  '1.2.3.4',
  'https://a.b/c?d#e',
  "it's",
  '5e',
  'e5',
  '0.',
  '08',
  '1:',
  '0_',
  '_1',
  '-0',
  '1__',
  'x'.repeat(2000),
)
const text = fc.oneof(
  tricky,
  fc.string({
    unit: fc.oneof(
      fc.constantFrom(' ', '\n', ':', '#', '-', '\t', '\r', '1', '.', 'e'),
      fc.string({ unit: 'binary', maxLength: 2 }),
    ),
    maxLength: 8,
  }),
)
const { tree } = fc.letrec<{ tree: Json }>(tie => ({
  tree: fc.oneof(
    { depthSize: 'small' },
    number,
    text,
    text,
    fc.constantFrom<Json>(null, true, false),
    fc.array(tie('tree'), { maxLength: 3 }),
    fc.dictionary(text, tie('tree'), { maxKeys: 3 }),
  ),
}))

test('canonical JSON keeps the value, and equal values give equal text', () => {
  const shuffle = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(shuffle)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value)
        .reverse()
        .map(([key, member]) => [key, shuffle(member)]),
    )
  }
  fc.assert(
    fc.property(tree, value => {
      const written = canonical(value)
      assert.deepEqual(JSON.parse(written), plain(value))
      assert.equal(canonical(shuffle(value) as Json), written)
      assert.equal(canonical(readJson(written).value), written)
    }),
    { numRuns: 3000 },
  )
})

test('YAML is written as kubectl prints it', () => {
  const object = {
    kind: 'Team',
    metadata: { name: 'a', labels: {}, creationTimestamp: '2024-01-01T00:00:00Z', resourceVersion: '12' },
    spec: {
      users: ['a', 'yes'],
      access: [{ verbs: ['*'], n: [[1, 2], []] }],
      text: 'one\ntwo\n',
      off: false,
      none: null,
      half: 0.5,
    },
  }
  const lines = [
    'kind: Team',
    'metadata:',
    '  name: a',
    '  labels: {}',
    '  creationTimestamp: "2024-01-01T00:00:00Z"',
    '  resourceVersion: "12"',
    'spec:',
    '  users:',
    '  - a',
    '  - "yes"',
    '  access:',
    '  - verbs:',
    "    - '*'",
    '    "n":',
    '    - - 1',
    '      - 2',
    '    - []',
    '  text: |',
    '    one',
    '    two',
    '  "off": false',
    '  none: null',
    '  half: 0.5',
    '',
  ]
  assert.equal(writeYaml(object), lines.join('\n'))
  assert.equal(writeYaml({ a: undefined, b: { c: undefined } } as unknown as Json), 'b: {}\n')
})

test('YAML output survives a round trip, also with readers of YAML 1.1 and 1.2', () => {
  fc.assert(
    fc.property(tree, value => {
      const written = writeYaml(value)
      const expected = plain(value)
      assert.deepEqual(plain(readYaml(written).value), expected, written)
      for (const version of ['1.1', '1.2'] as const) {
        // Only their maps may differ, because other readers cannot store __proto__.
        const read = parse(written, {
          version,
          schema: version === '1.1' ? 'yaml-1.1' : 'core',
          mapAsMap: true,
          logLevel: 'silent',
        })
        assert.equal(canonical(fromMaps(read)), canonical(expected as Json), written)
      }
    }),
    { numRuns: 2500 },
  )
})

function fromMaps(value: unknown): Json {
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, member]) => [key, fromMaps(member)]))
  return Array.isArray(value) ? value.map(fromMaps) : (value as Json)
}

test('encodes a string of three megabytes quickly', () => {
  const used = cpuMilliseconds(() => {
    for (const piece of ['1', '-', 'a', ' ', '\n', 'a\n', ':', '"', '1:', '0x', '.']) {
      const value = { a: piece.repeat((3 * 1024 * 1024) / piece.length) }
      assert.ok(writeYaml(value).length > 1_000_000 && canonical(value).length > 3_000_000)
    }
  })
  assert.ok(used < 5_000, `${used} ms`)
})
