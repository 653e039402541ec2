// Expressions: what is one, what is not and where, and which names are free.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the expressions here are texts

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseExpression } from './expression.ts'

const problems = (text: string) => parseExpression(text).problems.map(one => `${one.offset}: ${one.message}`)
const names = (text: string) => [...parseExpression(text).names].toSorted().join(' ')

test('one ES2020 expression of any shape is taken', () => {
  const taken = [
    'value',
    '"literal"',
    '42',
    ' value + 1 // why',
    '/* why */ value /* because */',
    'value?.a?.[0] ?? "none"',
    'value ? "a" : `b${value}`',
    '{ ip: value }',
    '({ ...value, a: 1 })',
    'value.map(({ ip, ...rest }, i) => ({ ip: `${ip}-${i}`, ...rest }))',
    'value.split(/[,;]/g).filter(Boolean)',
    '(() => { const parts = value.split("."); for (const one of parts) if (one) return one })()',
    '(function walk(x) { return x.next ? walk(x.next) : x })(value)',
    'value, 1',
    'value = value + 1',
    'typeof value === "string" && !valueExists',
    '2n ** 3n > 1',
    'new Date(value).toISOString()',
  ]
  for (const text of taken) assert.deepEqual(problems(text), [], text)
})

test('statements, import, await, yield, eval and new Function are refused with their place', () => {
  const cases: [string, RegExp][] = [
    ['', /^0: is empty/],
    ['  ', /^0: is empty/],
    ['value; value', /^5: is one expression and ends before ";"/],
    ['value;', /^5: /],
    ['let x = 1', /"let" begins a statement|ends before "x"/],
    ['const x = 1; x', /^0: "const" begins a statement/],
    ['if (value) 1', /^0: "if" begins a statement/],
    ['for (;;) {}', /^0: "for" begins a statement/],
    ['return value', /^0: "return" begins a statement/],
    ['throw value', /^0: "throw" begins a statement/],
    ['import x from "y"', /"import" begins a statement/],
    ['import("fs")', /^0: "import" is not allowed/],
    ['import.meta.url', /^0: import.meta/],
    ['await value', /await/],
    ['(async () => 1)()', /^1: "await" is not allowed/],
    ['(function* () { yield 1 })()', /"yield" is not allowed/],
    ['eval("1")', /^0: "eval" is not allowed/],
    ['new Function("return 1")()', /^4: "Function" is not allowed/],
    ['value +', /^7: Unexpected token/],
    ['(value', /^6: Unexpected token/],
    ['value) + (value', /^5: is one expression and ends before "\)"/],
    ['"open', /^0: Unterminated string/],
    ['value.#secret', /./],
    ['delete value', /Deleting local variable in strict mode/],
    ['010', /./],
    ['a'.repeat(20_000), /^16384: has over/],
    [`${'('.repeat(201)}value${')'.repeat(201)}`, /^200: is nested more than/],
  ]
  for (const [text, message] of cases) assert.match(problems(text).join('\n'), message, text.slice(0, 40))
})

test('a name that nobody binds is refused with the nearest that is known', () => {
  assert.deepEqual(problems('valeu + 1'), ['0: "valeu" is not known; did you mean value?'])
  assert.deepEqual(problems('1 + virtualToHostDns(value)'), [
    '4: "virtualToHostDns" is not known; did you mean virtualToHostDNS?',
  ])
  assert.match(
    problems('process.exit()').join(),
    /^0: "process" is not known: an expression knows value, valueExists, context, atob/,
  )
  for (const name of [
    'globalThis',
    'WebAssembly',
    'Atomics',
    'SharedArrayBuffer',
    'require',
    'fetch',
    'Promise',
    'Proxy',
  ])
    assert.match(problems(`${name}.x`).join(), /^0: "\w+" is not known/)
  assert.equal(problems('a + b + value').length, 2, 'all are told')
})

test('names are free where no function around them binds them', () => {
  const cases: [string, string][] = [
    ['value.context', 'value'],
    ['value[context]', 'context value'],
    ['({ value: 1, [btoa]: 2 })', 'btoa'],
    ['({ value })', 'value'],
    ['(value => value)(1)', ''],
    ['(({ value: [x, y = atob], ...context }) => x + y + context)(1)', 'atob'],
    ['(function value() { return value(arguments) })()', ''],
    ['(() => { let value = 1; { var context = value } return context })()', ''],
    ['(() => { try { null.x } catch (value) { return value } })()', ''],
    ['(x => context => x + value)(1)', 'value'],
    ['(() => { outer: for (const context of [1]) { continue outer } })()', ''],
    ['((x = value) => x)()', 'value'],
    ['`${context.path}`', 'context'],
    ['(() => { class context { value() { return context } } return context })()', ''],
    ['(class context {})', ''],
  ]
  for (const [text, expected] of cases) {
    assert.deepEqual(problems(text), [], text)
    assert.equal(names(text), expected, text)
  }
})

test('any text is answered, and every offset is in it (3000 cases)', () => {
  const word = fc.constantFrom(
    ...'value context ( ) { } [ ] => . ?. , ; ` ${ "a" /x/ + ** await async function* let x in of // /* */ \n'.split(
      ' ',
    ),
  )
  fc.assert(
    fc.property(
      fc.oneof(
        fc.array(word).map(words => words.join(' ')),
        fc.string({ unit: 'binary' }),
      ),
      text => {
        for (const { offset, message } of parseExpression(text).problems)
          assert.ok(offset >= 0 && offset <= text.length && message, `${offset}: ${message}`)
      },
    ),
    { numRuns: 3000 },
  )
  assert.ok(problems(`value${'+value'.repeat(2700)}`).length <= 1, 'a long chain is no crash')
})
