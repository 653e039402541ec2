// Label and field selectors: grammar, messages and matching (kubernetes-wire §1.11).
import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { parseFieldSelector, parseLabelSelector, SelectorError } from './selector.ts'

type Labels = { [key: string]: string }
const matches = (selector: string, labels?: Labels): boolean => parseLabelSelector(selector).matches(labels)

function problemOf(parse: () => unknown): string {
  try {
    parse()
  } catch (error) {
    assert.ok(error instanceof SelectorError)
    return error.message
  }
  return assert.fail('expected an error')
}

test('the empty selector matches everything', () => {
  for (const text of ['', ' ', '\t\n'])
    assert.ok(parseLabelSelector(text).empty && matches(text) && matches(text, { a: 'b' }))
})

test('k=v and k==v require the label and the value', () => {
  for (const op of ['=', '==', ' = ', ' == ']) {
    assert.ok(matches(`a${op}b`, { a: 'b' }))
    assert.ok(!matches(`a${op}b`, { a: 'c' }) && !matches(`a${op}b`, {}) && !matches(`a${op}b`))
  }
  assert.ok(matches('a=', { a: '' }) && !matches('a=', {}))
})

test('k!=v also matches objects without k', () => {
  assert.ok(matches('a!=b', {}) && matches('a!=b') && matches('a!=b', { a: 'c' }) && !matches('a!=b', { a: 'b' }))
})

test('k in (…) requires one of the values, k notin (…) also matches objects without k', () => {
  assert.ok(matches('a in (b,c)', { a: 'c' }) && !matches('a in (b, c)', { a: 'd' }) && !matches('a in (b)', {}))
  assert.ok(
    matches('a notin (b,c)', {}) && matches('a notin (b,c)', { a: 'd' }) && !matches('a notin (b,c)', { a: 'b' }),
  )
  assert.ok(matches('a in ()', { a: '' }) && !matches('a in ()', { a: 'x' }) && matches('a in (,b)', { a: '' }))
  assert.ok(matches('in in (in,notin)', { in: 'notin' }), 'the operators may also be keys and values')
})

test('k requires the label, !k its absence', () => {
  assert.ok(matches('a', { a: '' }) && !matches('a', {}) && matches('!a', {}) && !matches('!a', { a: 'b' }))
})

test('k>5 and k<5 compare 64-bit integers and match no other text', () => {
  assert.ok(
    matches('a>5', { a: '6' }) && !matches('a>5', { a: '5' }) && !matches('a>5', {}) && !matches('a>5', { a: 'x' }),
  )
  assert.ok(matches('a<9223372036854775807', { a: '9223372036854775806' }))
  assert.ok(!matches('a>5', { a: '9223372036854775808' }), 'not an integer beyond 64 bits')
})

test('commas mean and', () => {
  assert.ok(matches('a=b,!c,d in (e)', { a: 'b', d: 'e' }) && !matches('a=b,!c', { a: 'b', c: '' }))
})

test('inherited members are not labels', () => {
  assert.ok(!matches('constructor', {}) && !matches('toString', {}) && matches('!constructor', {}))
})

test('invalid label selectors have the messages of upstream', () => {
  const name =
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
  const value =
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
  const cases = {
    'a b': "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
    'a,': "found '', expected: identifier after ','",
    ',a': "found ',', expected: !, identifier, or 'end of string'",
    'a=b c': "found 'c', expected: ',' or 'end of string'",
    'a in b': "unable to parse requirement: found 'b' expected: '('",
    'a in (b': "unable to parse requirement: found '', expected: ',' or ')'",
    'a in (=': "unable to parse requirement: found '=', expected: ',', ')' or identifier",
    'a in (b,=)': "unable to parse requirement: found '=', expected: ',', or identifier",
    '!': "unable to parse requirement: found '', expected: identifier",
    '!a=b': "found '=', expected: ',' or 'end of string'",
    'a==(': "unable to parse requirement: found '(', expected: identifier",
    'a!b': "unable to parse requirement: found '!', expected: in, notin, =, ==, !=, gt, lt",
    '-a': `unable to parse requirement: <nil>: Invalid value: "-a": ${name}`,
    'a=b@': `unable to parse requirement: values[0][a]: Invalid value: "b@": ${value}`,
    'a in (b@,c@)': `unable to parse requirement: [values[0][a]: Invalid value: "b@": ${value}, values[1][a]: Invalid value: "c@": ${value}]`,
    'a>b':
      "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be an integer",
  }
  for (const [text, message] of Object.entries(cases))
    assert.equal(
      problemOf(() => parseLabelSelector(text)),
      message,
    )
})

test('an index uses equality and sets only', () => {
  const { equalities } = parseLabelSelector('a=1,b==2,c in (y,x,x),d!=4,e,!f,g notin (h),i>3')
  assert.deepEqual(
    equalities.map(({ key, values }) => [key, values]),
    [
      ['a', ['1']],
      ['b', ['2']],
      ['c', ['x', 'y']],
    ],
  )
})

const name = fc.string({ unit: fc.constantFrom('a', 'b', 'c', '1', '2'), minLength: 1, maxLength: 2 })
const value = fc.oneof(name, fc.constantFrom('', 'in', 'notin', '7', '12'))
const requirement = fc.oneof(
  fc.record({ key: name, op: fc.constantFrom('exists', '!'), values: fc.constant([] as string[]) }),
  fc.record({ key: name, op: fc.constantFrom('=', '==', '!='), values: fc.tuple(value) }),
  fc.record({ key: name, op: fc.constantFrom('>', '<'), values: fc.tuple(fc.nat({ max: 20 }).map(String)) }),
  fc.record({
    key: name,
    op: fc.constantFrom('in', 'notin'),
    values: fc.uniqueArray(value, { minLength: 1, maxLength: 3 }),
  }),
)
type Requirement = { key: string; op: string; values: string[] }
const blank = fc.constantFrom('', ' ', '\t')

function write({ key, op, values }: Requirement, space: string): string {
  if (op === 'exists') return `${space}${key}${space}`
  if (op === '!') return `!${space}${key}`
  if (op === 'in' || op === 'notin') return `${key} ${op}${space}(${listed(values).join(`${space},${space}`)})`
  return `${key}${space}${op}${space}${values[0]}`
}

/** An empty value can be written first without ambiguity. */
function listed(values: string[]): string[] {
  return [...values].sort()
}

function meets({ key, op, values }: Requirement, labels: Map<string, string>): boolean {
  const found = labels.get(key)
  const isListed = found !== undefined && new Set(values).has(found)
  const isNumber = found !== undefined && /^[0-9]+$/.test(found)
  switch (op) {
    case 'exists':
      return found !== undefined
    case '!':
      return found === undefined
    case '!=':
    case 'notin':
      return !isListed
    case '>':
      return isNumber && Number(found) > Number(values[0])
    case '<':
      return isNumber && Number(found) < Number(values[0])
    default:
      return isListed
  }
}

test('a selector agrees with a naive implementation, and survives a round trip', () => {
  fc.assert(
    fc.property(fc.array(requirement, { maxLength: 4 }), fc.dictionary(name, value), blank, (list, labels, space) => {
      const requirements = list as Requirement[]
      const selector = parseLabelSelector(requirements.map(each => write(each, space)).join(','))
      const own = new Map(Object.entries(labels))
      assert.equal(
        selector.matches(labels),
        requirements.every(each => meets(each, own)),
      )
      const printed = selector.toString()
      const again = parseLabelSelector(printed)
      assert.equal(again.toString(), printed)
      assert.equal(again.matches(labels), selector.matches(labels))
      assert.equal(again.empty, requirements.length === 0)
      const usable = selector.equalities.every(({ key, values }) => values.includes(own.get(key) ?? '\0'))
      assert.ok(usable || !selector.matches(labels), 'objects that the index skips cannot match')
    }),
    { numRuns: 4000 },
  )
})

test('any text is either a selector or a SelectorError', () => {
  const soup = fc.string({
    unit: fc.constantFrom('a', 'in', 'notin', ' ', ',', '(', ')', '=', '!', '<', '>', '/', '@', '\\'),
    maxLength: 12,
  })
  fc.assert(
    fc.property(soup, text => {
      for (const parse of [parseLabelSelector, (each: string) => parseFieldSelector(each, ['a'])]) {
        try {
          assert.equal(parse(parse(text).toString()).toString(), parse(text).toString())
        } catch (error) {
          assert.ok(error instanceof SelectorError, String(error))
        }
      }
    }),
    { numRuns: 4000 },
  )
})

const fields = ['metadata.name', 'metadata.namespace']

test('a field selector supports =, == and !=, and a comma means and', () => {
  const get = (object: Labels) => (field: string) => object[field] ?? ''
  const selector = parseFieldSelector('metadata.namespace!=x,metadata.name==a,', fields)
  assert.deepEqual(selector.terms, [
    { field: 'metadata.name', op: '=', value: 'a' },
    { field: 'metadata.namespace', op: '!=', value: 'x' },
  ])
  assert.ok(selector.matches(get({ 'metadata.name': 'a' })))
  assert.ok(!selector.matches(get({ 'metadata.name': 'a', 'metadata.namespace': 'x' })))
  assert.ok(parseFieldSelector('', fields).empty && parseFieldSelector(',,', fields).empty)
})

test('invalid field selectors have the messages of upstream', () => {
  const cases = {
    foo: "invalid selector: 'foo'; can't understand 'foo'",
    'spec.displayName=x': 'field label not supported: spec.displayName',
    'metadata.name=a\\x': 'invalid field selector: invalid escape sequence: \\x',
    'metadata.name=a\\': 'invalid field selector: invalid escape sequence: \\',
    'metadata.name=a=b': 'invalid field selector: unescaped character in value: 61',
  }
  for (const [text, message] of Object.entries(cases))
    assert.equal(
      problemOf(() => parseFieldSelector(text, fields)),
      message,
    )
})

test('a field selector can escape any value with \\, \\= and \\\\', () => {
  const term = fc.record({
    field: fc.constantFrom(...fields),
    op: fc.constantFrom('=', '!='),
    value: fc.string({ unit: fc.constantFrom('a', '\\', ',', '=', '!', ' ', 'é'), maxLength: 6 }),
  })
  fc.assert(
    fc.property(fc.array(term, { maxLength: 3 }), fc.constantFrom('a', '', '\\', ','), (terms, name) => {
      const text = terms
        .map(({ field, op, value }) => `${field}${op}${value.replace(/[\\,=]/g, found => `\\${found}`)}`)
        .join(',')
      const selector = parseFieldSelector(text, fields)
      const order = (a: { field: string; op: string; value: string }) => JSON.stringify([a.field, a.op, a.value])
      assert.deepEqual(selector.terms.map(order).sort(), terms.map(order).sort())
      assert.deepEqual(parseFieldSelector(selector.toString(), fields).terms, selector.terms)
      assert.equal(
        selector.matches(() => name),
        terms.every(({ op, value }) => (op === '=') === (value === name)),
      )
    }),
    { numRuns: 3000 },
  )
})
