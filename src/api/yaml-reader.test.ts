// The YAML 1.2 reader reads one document, and limits the cost of hostile texts (D4, D7).
import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { parse, stringify } from 'yaml'
import { cpuMilliseconds } from '../../test/support/cpu-time.ts'
import { DecodeError, readJson } from './json-reader.ts'
import type { Json } from './object.ts'
import { decodeYamlFile } from './yaml-codec.ts'
import { readYaml } from './yaml-reader.ts'

const read = (text: string): unknown => JSON.parse(JSON.stringify(readYaml(text).value))

function problemOf(text: string): string {
  try {
    readYaml(text)
  } catch (error) {
    assert.ok(error instanceof DecodeError, String(error))
    return error.message
  }
  return assert.fail(`expected an error: ${text.slice(0, 50)}`)
}

test('the core schema of YAML 1.2: yes, no, on and times stay strings', () => {
  const text =
    '%YAML 1.1\n---\na: yes\nb: NO\nc: on\nd: 2024-01-01T00:00:00Z\ne: 12:30\nf: true\ng: ~\nh: 0x1f\ni: 1e3\nj:\nk: "1"\n'
  assert.deepEqual(read(text), {
    a: 'yes',
    b: 'NO',
    c: 'on',
    d: '2024-01-01T00:00:00Z',
    e: '12:30',
    f: true,
    g: null,
    h: 31,
    i: 1000,
    j: null,
    k: '1',
  })
})

test('duplicates have line and key, and the last one wins', () => {
  const { value, duplicates } = readYaml(
    'kind: Team\nspec:\n  displayName: a\n  users:\n  - name: x\n    name: y\n  displayName: b\n',
  )
  assert.deepEqual(duplicates, [
    'line 6: key "name" already set in map',
    'line 7: key "displayName" already set in map',
  ])
  assert.equal(JSON.stringify(value), '{"kind":"Team","spec":{"displayName":"b","users":[{"name":"y"}]}}')
  assert.deepEqual(readYaml('{"a": 1,\n"a": 2}').duplicates, ['line 2: key "a" already set in map'])
  assert.deepEqual(readYaml('1: a\n"1": b\n').duplicates, ['line 2: key "1" already set in map'])
})

test('each duplicate key has its own position, also on one line and in aliases', () => {
  const { repeated } = readYaml('a: &a {x: 1, "x": 2, x: 3}\nb:\n  - *a\n  - ? y\n    : 1\n    y: 2\n')
  const message = 'key "x" already set in map'
  assert.deepEqual(repeated, [
    { line: 1, column: 14, message },
    { line: 1, column: 22, message },
    { line: 6, column: 5, message: 'key "y" already set in map' },
  ])
  assert.deepEqual(readYaml('{"a": 1,\n "a": 2}').repeated, [
    { line: 2, column: 2, message: 'key "a" already set in map' },
  ])
  assert.deepEqual(readYaml('{"a": 1}').repeated, [])
  const many = Array.from({ length: 1000 }, () => 'a: 1').join(', ')
  assert.equal(readYaml(`{${many}}`).repeated.length, 100)
})

test('number and boolean keys become strings as written, other keys are rejected', () => {
  assert.deepEqual(read('1: a\n0x10: b\ntrue: c\n1.50: d\nyes: e\n'), {
    1: 'a',
    '0x10': 'b',
    true: 'c',
    '1.50': 'd',
    yes: 'e',
  })
  for (const text of ['? [a]\n: b', '? {a: b}\n: c', '~: a', '? \n: a'])
    assert.match(problemOf(text), /expected a key that is a string/)
})

test('__proto__ and << are ordinary keys of maps without a prototype', () => {
  const { value } = readYaml('__proto__:\n  a: 1\nconstructor: 2\n<<: {x: 1}\n')
  assert.equal(Object.getPrototypeOf(value), null)
  assert.equal(JSON.stringify(value), '{"__proto__":{"a":1},"constructor":2,"<<":{"x":1}}')
})

test('reads exactly one document and ignores empty ones', () => {
  assert.deepEqual(read('---\n---\na: 1\n...\n---\n'), { a: 1 })
  assert.equal(problemOf('a: 1\n---\nb: 2\n'), 'line 2, column 1: expected one document, found another')
  for (const text of ['', '# nothing', '---', 'null']) assert.equal(readYaml(text).value, null)
})

test('rejects custom tags, accepts core tags', () => {
  for (const text of ['a: !foo 1', '!!set {a}', 'a: !!binary aGk=', '!!js/function x', 'a: !!timestamp 2024-01-01']) {
    assert.match(problemOf(text), /custom tags are not supported/)
  }
  assert.deepEqual(read('a: !!str 1\nb: !!int "2"\n'), { a: '1', b: 2 })
})

test('rejects integers beyond 2^53, NaN and infinity', () => {
  assert.deepEqual(read('[9007199254740992, -9007199254740992]'), [2 ** 53, -(2 ** 53)])
  for (const number of [
    '9007199254740993',
    '-9007199254740993',
    '0x20000000000001',
    '1e20',
    '1e400',
    '.inf',
    '-.INF',
    '.nan',
  ]) {
    assert.match(problemOf(`a:\n  b: ${number}`), /^line 2, column 6: /)
  }
})

test('an error has line and column, and never a value', () => {
  const cases = {
    'a: "secret': 'line 1, column 11: a closing quote or bracket, a comma, a colon or a space is missing',
    'a: 1\n\tb: secret': 'line 2, column 1: tabs may not be used for indentation',
    'a: *secret': 'line 1, column 4: an alias must refer to an anchor before it',
    'a: b: secret':
      "line 1, column 4: expected a value on a line of its own: two ':' on one line, or quotes are missing",
    'a: @secret': 'line 1, column 4: a plain value cannot begin with this character: put it in quotes',
    'a: [\n': "line 2, column 1: expected ']': the '[' above is not closed, or what is inside it is not indented",
    'a: {b: secret\nc: 1\n':
      "line 2, column 1: expected '}': the '{' above is not closed, or what is inside it is not indented",
    '[secret': "line 1, column 8: expected ']': the '[' above is not closed, or what is inside it is not indented",
    'a: "\\secret"': 'line 1, column 5: this escape sequence is not known in double quotes',
  }
  for (const [text, message] of Object.entries(cases)) assert.equal(problemOf(text), message)
  for (const text of [
    'a: [secret',
    'a: {secret: ]',
    '- secret\nb: 1',
    ']secret',
    'a: "x" secret',
    '&secret &b c',
    '%secret',
  ]) {
    assert.doesNotMatch(problemOf(text), /secret/)
  }
})

test('aliases repeat their anchor, but never themselves', () => {
  assert.deepEqual(read('a: &x {k: [1]}\nb: *x\nc: &x 2\nd: *x\n'), { a: { k: [1] }, b: { k: [1] }, c: 2, d: 2 })
  for (const text of ['&a [*a]', 'a: &x\n  b: *x\n', '&a [&b [*a]]'])
    assert.match(problemOf(text), /inside its own anchor/)
})

test('rejects alias bombs quickly, also with long strings or deep nesting', () => {
  let bomb = 'a0: &a0 [x,x,x,x,x,x,x,x,x]\n'
  for (let level = 1; level < 40; level++) bomb += `a${level}: &a${level} [${Array(9).fill(`*a${level - 1}`)}]\n`
  const long = `a: &a ${'x'.repeat(500 * 1024)}\nb: [*a,*a,*a,*a,*a,*a,*a]\n`
  let deep = 'a0: &a0 [x]\n'
  for (let level = 1; level < 200; level++) deep += `a${level}: &a${level} [*a${level - 1}]\n`
  for (const text of [bomb, long]) {
    assert.ok(cpuMilliseconds(() => assert.match(problemOf(text), /the aliases expand to more than 3 MiB/)) < 300)
  }
  assert.ok(cpuMilliseconds(() => assert.match(problemOf(deep), /nested deeper than 100/)) < 300)
})

test('accepts a depth of 100, and rejects a megabyte of brackets quickly', () => {
  assert.doesNotThrow(() => readYaml(`${'['.repeat(100)}a${']'.repeat(100)}`))
  assert.match(problemOf(`${'['.repeat(101)}a${']'.repeat(101)}`), /nested deeper than 100/)
  const block = (depth: number) => Array.from({ length: depth }, (_, level) => `${' '.repeat(level)}a:\n`).join('')
  assert.doesNotThrow(() => readYaml(block(100)))
  assert.match(problemOf(block(101)), /nested deeper than 100/)
  for (const text of ['[', '{', '- ', '? ', '{a: ', '[{', ': ', '[[],']) {
    const used = cpuMilliseconds(() =>
      assert.match(problemOf(text.repeat((512 * 1024) / text.length)), /nested deeper than 100/),
    )
    assert.ok(used < 200, `${used} ms for ${text}`)
  }
})

test('rejects three megabytes of small tokens early, with an alternative', () => {
  for (const text of [
    'a: 1\n',
    '- a\n',
    '&a ',
    '*a ',
    '\n',
    '""',
    '#\n',
    '%A\n',
    '---\n',
    '|\n',
    'a\n',
    '[a,b],',
    "''",
  ]) {
    const used = cpuMilliseconds(() => {
      try {
        readYaml(text.repeat((3 * 1024 * 1024) / text.length))
      } catch (error) {
        assert.ok(error instanceof DecodeError)
      }
    })
    assert.ok(used < 2_000, `${used} ms for ${text}`)
  }
  assert.match(problemOf(`[${'a,'.repeat(60_000)}]`), /more than 10000 YAML tokens: send JSON instead/)
  const long = `a: ${'x'.repeat(512 * 1024)}`
  assert.match(problemOf(long), /more than 524288 characters of YAML: send JSON instead/)
  assert.doesNotThrow(() => decodeYamlFile(new TextEncoder().encode(long)), 'a file')
})

const text = fc.string({
  unit: fc.oneof(
    fc.constantFrom('"', '\\', '\n', ' ', ':', '#', '-', '__proto__'),
    fc.string({ unit: 'grapheme-ascii', maxLength: 3 }),
  ),
  maxLength: 5,
})
const { tree } = fc.letrec<{ tree: Json }>(tie => ({
  tree: fc.oneof(
    { depthSize: 'small' },
    fc.integer(),
    text,
    fc.constantFrom<Json>(null, true, 0.5),
    fc.array(tie('tree'), { maxLength: 3 }),
    fc.dictionary(text, tie('tree'), { maxKeys: 3 }),
  ),
}))

test('both readers give the same result for JSON', () => {
  fc.assert(
    fc.property(tree, value => {
      const written = JSON.stringify(value, null, 1)
      const expected = JSON.stringify(readJson(written).value)
      assert.equal(JSON.stringify(readYaml(written).value), expected)
      // The comment disables the fast path for JSON.
      assert.equal(JSON.stringify(readYaml(`# yaml\n${written}`).value), expected)
    }),
    { numRuns: 2000 },
  )
})

test('reads block style like the YAML library', () => {
  fc.assert(
    fc.property(tree, value => {
      const written = stringify(value)
      let expected: unknown
      try {
        expected = parse(written)
      } catch {
        // The library cannot always read its own output, for example a line of blanks before others.
        problemOf(written)
        return
      }
      assert.deepEqual(read(written), JSON.parse(JSON.stringify(expected)))
    }),
    { numRuns: 2000 },
  )
})

test('any text is either valid or a DecodeError', () => {
  const soup = fc.array(
    fc.constantFrom(
      'a',
      ': ',
      '- ',
      '\n',
      '  ',
      '[',
      ']',
      '{',
      '}',
      ',',
      '&a ',
      '*a',
      '!t ',
      '"',
      "'",
      '|',
      '>',
      '#',
      '? ',
      '---\n',
      '%Y',
      '1',
      '~',
      '\t',
    ),
    { maxLength: 14 },
  )
  fc.assert(
    fc.property(soup, pieces => {
      try {
        JSON.stringify(readYaml(pieces.join('')).value)
      } catch (error) {
        assert.ok(error instanceof DecodeError, String(error))
      }
    }),
    { numRuns: 5000 },
  )
})
