// Expressions: which are accepted, errors with their position, and free variables.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the expressions here are texts

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseExpression } from './expression.ts'

const problems = (text: string) => parseExpression(text).problems.map(one => `${one.offset}: ${one.message}`)
const names = (text: string) => [...parseExpression(text).names].toSorted().join(' ')

test('every kind of ES2020 expression is accepted', () => {
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

test('statements, import, await, yield, eval and new Function are rejected with their position', () => {
  const cases: [string, RegExp][] = [
    ['', /^0: is empty/],
    ['  ', /^0: is empty/],
    ['value; value', /^5: must be one expression, but it ends before ";"/],
    ['value;', /^5: /],
    ['let x = 1', /"let" starts a statement|ends before "x"/],
    ['const x = 1; x', /^0: "const" starts a statement/],
    ['if (value) 1', /^0: "if" starts a statement/],
    ['for (;;) {}', /^0: "for" starts a statement/],
    ['return value', /^0: "return" starts a statement/],
    ['throw value', /^0: "throw" starts a statement/],
    ['import x from "y"', /"import" starts a statement/],
    ['import("fs")', /^0: "import" is not allowed/],
    ['import.meta.url', /^0: import.meta/],
    ['await value', /await/],
    ['(async () => 1)()', /^1: "await" is not allowed/],
    ['(function* () { yield 1 })()', /"yield" is not allowed/],
    ['eval("1")', /^0: "eval" is not allowed/],
    ['new Function("return 1")()', /^4: "Function" is not allowed/],
    ['value +', /^7: Unexpected token/],
    ['(value', /^6: Unexpected token/],
    ['value) + (value', /^5: must be one expression, but it ends before "\)"/],
    ['"open', /^0: Unterminated string/],
    ['value.#secret', /./],
    ['delete value', /Deleting local variable in strict mode/],
    ['010', /./],
    ['a'.repeat(20_000), /^16384: has more than/],
    [`${'('.repeat(201)}value${')'.repeat(201)}`, /^200: is nested more than/],
  ]
  for (const [text, message] of cases) assert.match(problems(text).join('\n'), message, text.slice(0, 40))
})

test('an unknown name is rejected with a suggestion', () => {
  assert.deepEqual(problems('valeu + 1'), ['0: unknown name "valeu"; did you mean value?'])
  assert.deepEqual(problems('1 + virtualToHostDns(value)'), [
    '4: unknown name "virtualToHostDns"; did you mean virtualToHostDNS?',
  ])
  assert.match(
    problems('process.exit()').join(),
    /^0: unknown name "process": available are value, valueExists, context, atob/,
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
    assert.match(problems(`${name}.x`).join(), /^0: unknown name "\w+"/)
  assert.equal(problems('a + b + value').length, 2, 'all are told')
})

test('free variables are those that no enclosing function binds', () => {
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

test('any text can be parsed, and every offset is within it (3000 cases)', () => {
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
  assert.ok(problems(`value${'+value'.repeat(2700)}`).length <= 1, 'a long chain does not crash')
})
