// The strict JSON reader accepts what JSON.parse accepts, except for D4, and its errors have positions instead of values.

import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { cpuMilliseconds } from '../../test/support/cpu-time.ts'
import { DecodeError, readJson, TooManyValues } from './json-reader.ts'
import type { Json } from './object.ts'

const plain = (value: Json): unknown => JSON.parse(JSON.stringify(value))

function problemOf(text: string): string {
  try {
    readJson(text)
  } catch (error) {
    assert.ok(error instanceof DecodeError, String(error))
    return error.message
  }
  return assert.fail(`expected an error: ${text.slice(0, 50)}`)
}

test('reports each duplicate key once by its path, and the last one wins', () => {
  const text =
    '{"spec":{"displayName":"a","displayName":"b","users":[{"name":1,"name":2,"name":3}]},"kind":"a","kind":"b"}'
  const { value, duplicates } = readJson(text)
  assert.deepEqual(duplicates, ['spec.displayName', 'spec.users[0].name', 'kind'])
  assert.deepEqual(plain(value), { spec: { displayName: 'b', users: [{ name: 3 }] }, kind: 'b' })
  assert.deepEqual(readJson('[[{"a":1,"a":2}]]').duplicates, ['[0][0].a'])
  assert.deepEqual(readJson('{"a":{"x":1},"b":{"x":1},"null":null}').duplicates, [])
})

test('at most 100 duplicates are kept, however many and however long', () => {
  const many = Array.from({ length: 5_000 }, (_, index) => `"k${index}":1,"k${index}":2`).join()
  assert.equal(readJson(`{${many}}`).duplicates.length, 100)
  assert.ok(readJson(`{"${'x'.repeat(1_000_000)}":{${many}}}`).duplicates.join().length < 100_000)
})

test('strings, keys and numbers have at most maxText characters, also without a closing quote', () => {
  const limited = (text: string) => readJson(text, { maxText: 10 })
  assert.deepEqual(plain(limited('{"abc":"de","f":1234}').value), { abc: 'de', f: 1234 })
  assert.equal(limited('"\\n\\n\\n\\n\\n"').value, '\n\n\n\n\n')
  for (const text of [
    '{"abc":"def","g":1234}',
    '"12345678901"',
    '"\\n\\n\\n\\n\\n1"',
    '12345678901',
    '"\\n234567890',
    '"\\"234567890"',
    '[0.12,0.34,0.5]',
  ])
    assert.throws(() => limited(text), TooManyValues, text)
})

test('__proto__ and similar names are ordinary keys of maps without a prototype', () => {
  const { value, duplicates } = readJson('{"__proto__":{"a":1},"constructor":1,"toString":2,"hasOwnProperty":3}')
  assert.equal(Object.getPrototypeOf(value), null)
  assert.deepEqual(Object.keys(value as object), ['__proto__', 'constructor', 'toString', 'hasOwnProperty'])
  assert.deepEqual(duplicates, [])
  assert.deepEqual(readJson('{"__proto__":1,"__proto__":2}').duplicates, ['__proto__'])
})

test('integers beyond 2^53 are rejected, not rounded (D4)', () => {
  assert.equal(readJson('9007199254740992').value, 2 ** 53)
  assert.equal(readJson('-9007199254740992').value, -(2 ** 53))
  for (const text of [
    '9007199254740993',
    '-9007199254740993',
    '1234567890123456789',
    `1${'0'.repeat(400)}`,
    '1e20',
    '-1E16',
  ]) {
    assert.match(problemOf(`{"a": ${text}}`), /^line 1, column 7: (?:integers beyond 2\^53|this number is too large)/)
  }
  assert.match(problemOf('1e400'), /too large/)
  for (const text of ['1.5', '1e3', '1E-7', '1e300', '-0.1e+2', '123456789012345'])
    assert.equal(readJson(text).value, Number(text))
  assert.ok(Object.is(readJson('-0').value, 0), 'minus zero would not survive being written')
})

test('an error has line, column and expectation, and never a value', () => {
  const cases = {
    '': 'line 1, column 1: expected a JSON value, the text ends here',
    '{"a":1,}': "line 1, column 8: expected a key in double quotes, found '}'",
    '{"a"\n "secret"}': "line 2, column 2: expected ':' after a key, found '\"'",
    '{"a":secret}': 'line 1, column 6: expected a JSON value, found something else',
    '{"a":1 "b":2}': "line 1, column 8: expected ',' or '}' after a member, found '\"'",
    '[1 2]': "line 1, column 4: expected ',' or ']' after an element, found something else",
    '"secret': 'line 1, column 8: expected a closing quote, the text ends here',
    '"a\u0000b"': 'line 1, column 3: a control character in a string must be escaped',
    '"\\x"': 'line 1, column 2: a backslash must be followed by one of "\\/bfnrt or u',
    '"\\u12g4"': 'line 1, column 2: expected four hexadecimal digits after \\u',
    '01': 'line 1, column 1: a number may not begin with a zero',
    '-': "line 1, column 2: expected a digit after '-', the text ends here",
    '1.': "line 1, column 3: expected a digit after '.', the text ends here",
    '1e': 'line 1, column 3: expected a digit in the exponent, the text ends here',
    '1 secret': 'line 1, column 3: expected the end of the text, found something else',
    'a: 1': 'line 1, column 1: expected a JSON value, found something else',
  }
  for (const [text, message] of Object.entries(cases)) assert.equal(problemOf(text), message)
})

test('escapes, lone surrogates and NUL are read as written', () => {
  assert.equal(
    readJson('"\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\ud83d\\ude00\\ud800 é😀\u007f"').value,
    '"\\/\b\f\n\r\t\0😀\ud800 é😀\u007f',
  )
})

test('accepts a depth of 100, and rejects three megabytes of brackets quickly', () => {
  assert.doesNotThrow(() => readJson('['.repeat(100) + ']'.repeat(100)))
  assert.match(problemOf('['.repeat(101) + ']'.repeat(101)), /column 101: nested deeper than 100/)
  assert.match(problemOf('{"a":'.repeat(101)), /nested deeper than 100/)
  assert.throws(() => readJson('[[1]]', { maxDepth: 1 }), DecodeError)
  const used = cpuMilliseconds(() => {
    for (const text of ['[', '{"a":', '[{"a":', ' ', '"', '1']) problemOf(text.repeat((3 * 1024 * 1024) / text.length))
  })
  assert.ok(used < 600, `${used} ms`)
})

// Numbers between 2^53 and 1e21 print as integers, so the reader rejects them.
const isKept = (number: number): boolean => Math.abs(number) <= 2 ** 53 || Math.abs(number) >= 1e21
const number = fc.double({ noNaN: true, noDefaultInfinity: true }).filter(isKept)
const text = fc.string({
  unit: fc.oneof(
    fc.constantFrom('"', '\\', '\n', '\0', '\ud800', '__proto__'),
    fc.string({ unit: 'binary', maxLength: 3 }),
  ),
  maxLength: 6,
})
const { tree } = fc.letrec<{ tree: Json }>(tie => ({
  tree: fc.oneof(
    { depthSize: 'small' },
    number,
    text,
    fc.constantFrom<Json>(null, true, false, 0, -0, 5e-324),
    fc.array(tie('tree'), { maxLength: 4 }),
    fc.dictionary(text, tie('tree'), { maxKeys: 4 }),
  ),
}))

test('reads the output of JSON.stringify', () => {
  fc.assert(
    fc.property(tree, fc.constantFrom('', ' ', '\t', '\r\n'), (value, space) => {
      const written = JSON.stringify(value, null, space).replaceAll('\n', space === '' ? '\n' : '\r\n')
      const { value: read, duplicates } = readJson(written)
      // Keys keep their order. JSON.parse may change it next to __proto__.
      assert.equal(JSON.stringify(read), JSON.stringify(value))
      assert.deepEqual(plain(read), JSON.parse(written))
      assert.deepEqual(duplicates, [])
    }),
    { numRuns: 3000 },
  )
})

/** Almost valid JSON: parts of JSON that are cut, repeated and swapped. */
const piece = fc.constantFrom(
  '{',
  '}',
  '[',
  ']',
  ',',
  ':',
  '"',
  '\\',
  'u00e9',
  'a',
  '1',
  '0',
  '-',
  '.',
  'e',
  '+',
  'true',
  'null',
  ' ',
  '\n',
  '\t',
  '\u0001',
  '\u00a0',
  '/',
)
const mutated = fc
  .tuple(tree, fc.array(fc.tuple(fc.nat(), fc.nat({ max: 2 }), piece), { maxLength: 3 }))
  .map(([value, edits]) => {
    let result = JSON.stringify(value)
    for (const [seed, cut, insert] of edits) {
      const at = seed % (result.length + 1)
      result = result.slice(0, at) + insert + result.slice(at + cut)
    }
    return result
  })

test('accepts what JSON.parse accepts, except for inexact numbers', () => {
  const soup = fc.array(piece, { maxLength: 8 }).map(pieces => pieces.join(''))
  let accepted = 0
  fc.assert(
    fc.property(fc.oneof(mutated, soup), candidate => {
      let expected: unknown
      try {
        expected = JSON.parse(candidate)
      } catch {
        problemOf(candidate)
        return
      }
      accepted++
      try {
        assert.deepEqual(plain(readJson(candidate).value), JSON.parse(JSON.stringify(expected)))
      } catch (error) {
        assert.ok(error instanceof DecodeError && /integers beyond|too large/.test(error.message), String(error))
      }
    }),
    { numRuns: 10_000 },
  )
  assert.ok(accepted > 1_000)
})

test('a kilobyte is read in well under a millisecond', () => {
  const written = JSON.stringify(
    Array.from({ length: 12 }, (_, index) => ({
      name: `user-${index}`,
      labels: { tier: 'gold', index },
      active: true,
    })),
  )
  for (let round = 0; round < 2_000; round++) readJson(written)
  const used = cpuMilliseconds(() => {
    for (let round = 0; round < 2_000; round++) readJson(written)
  })
  assert.ok(used / 2_000 < 0.3, `${used / 2_000} ms`)
})
