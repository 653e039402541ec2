// Every accepted text is exactly one expression in the wrapper, for the engine and for the parser.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the expressions here are texts

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { type AnyNode, type ModuleDeclaration, parse, parseExpressionAt, type Statement } from 'acorn'
import fc from 'fast-check'
import { parseExpression } from './expression.ts'
import { visit } from './free-variables.ts'
import { openSandbox } from './sandbox.ts'

const sandbox = openSandbox({ workers: 1 })
after(() => sandbox.close())

const isAccepted = (text: string) => parseExpression(text).problems.length === 0

/** A module reads operators where a script reads comments, and so sees other brackets. */
const leaving = '1 <!--value[[{ a: (0\n) }, function () { return ("LEFT" <!--value) }]]'

test('an expression that escapes its wrapper through HTML-like comments is rejected', async () => {
  const [result] = await sandbox.evaluate({ expression: leaving, values: [1] })
  assert.deepEqual(result, { value: 'LEFT' }, 'the engine reads two functions: only the checker stops it')
  assert.equal(isAccepted(leaving), false)
})

test('HTML-like comments are rejected with their offset; the same characters in strings or operators are accepted', () => {
  for (const [text, offset] of [
    ['1 <!--value', 2],
    ['value.map(one => one <!--value)', 21],
    ['`${value <!--value}`', 9],
  ] as const)
    assert.deepEqual(
      parseExpression(text).problems.map(one => [one.offset, one.message.slice(0, 24)]),
      [[offset, 'has an HTML-like comment']],
      JSON.stringify(text),
    )
  for (const text of ['[value,\n--> x\n1]', 'value[value /*\n*/--> 1\n]', 'value\n--> 1'])
    assert.equal(isAccepted(text), false, JSON.stringify(text))
  for (const text of [
    '"<!--" + value + "-->"',
    '`<!-- ${value}\n-->`',
    'value.replace(/<!--.*-->/, "")',
    'value // <!-- no comment in a comment',
    'value /* \n--> */',
    '(() => { let i = 3; while (i-->0) value += i; return value })()',
    'value < ! --value',
    '"</script>"',
  ])
    assert.deepEqual(parseExpression(text).problems, [], text)
})

test('a text that closes the wrapper, hides its end or adds statements is rejected', () => {
  const refused = [
    ...['#!/usr/bin/env node\nvalue', '#!value', '\ufeff#!value'],
    ...['value // \u2028) }); (function () { return (1', 'value // \u2029; 1', 'value\u2028; 1'],
    ...['`', '`${', '`${value', 'value + `', '/[', '/(', '"', "'", '/*', 'value /*', 'value /* )', '"\\'],
    ...['await value', 'await', 'yield', 'yield value', 'import("x")', 'import.meta', 'import.meta.url'],
    ...['export default value', 'export { value }', 'import "x"', '(async () => await value)()'],
    ...['</script>', 'value </script>', '<script>', '-->', '<!--', '<!-- value', '--> value'],
    ...['"a\0b"', 'value //\0', '\0value', '`\0`', '/\0/', '"\ud800"', 'value // \udc00', "'\udc00\ud800'"],
    ...['new.target', '(() => new.target)()', '(function () { return new.target })()', 'n\\u0065w.target'],
    ...['super', 'super.x', 'super()', '({ m() { return super.constructor } }, super.x)'],
    ...['label: value', 'return value', 'value; return 1', 'break', 'continue', 'debugger', 'throw value'],
    ...['value)', '(value', 'value) + (value', 'value) }', 'value) })', 'value\n) }); (function () { return (1'],
    ...['1) } || function () { return (2', '1) }, function () { return (2', '1) }) || (function () { return (2'],
    ...['value) } //', 'value) }) //', 'value) }) /*', '} {', ') (', '] [', '1) + (2', '}), ({', '); ('],
    ...['', ' ', '\n', '// value', '/* value */', ';', ',', 'value,', ',value', '...value', 'value;'],
    ...['arguments', 'arguments[0]', 'with (value) {}', 'var x', 'function f() {} value', 'value\nvalue'],
    ...['a'.repeat(16_384), `value.${'a'.repeat(16_384)}`, '\\u{76}alu\\u{65}}', 'eval', 'ev\\u0061l("1")'],
  ]
  for (const text of refused) assert.equal(isAccepted(text), false, JSON.stringify(text.slice(0, 60)))
})

test('a very long name is accepted up to the limit of the text', () => {
  assert.equal(isAccepted(`value.${'a'.repeat(16_378)}`), true)
})

type Shape = readonly (string | number)[]

/** Types and offsets of all nodes, parents first. */
function shapeOf(root: AnyNode, shift: number): Shape[] {
  const shape: Shape[] = []
  visit(root, node => shape.push([node.type, node.start - shift, node.end - shift]))
  return shape
}

/** A copy, so that the oracle does not share code with the checker. */
const [head, tail] = [
  "(function (value, valueExists, context, atob, btoa, virtualToHostDNS) { 'use strict'; return (",
  '\n) })',
]

/** The expression inside the wrapper as a script parser sees it; undefined: not exactly one. */
function insideOf(text: string): AnyNode | undefined {
  const options = { ecmaVersion: 2020, sourceType: 'script', preserveParens: true } as const
  const { body } = parse(head + text + tail, options)
  const [statement] = body as readonly (Statement | ModuleDeclaration)[]
  if (body.length !== 1 || statement?.type !== 'ExpressionStatement') return undefined
  if (statement.expression.type !== 'ParenthesizedExpression') return undefined
  const made = statement.expression.expression
  if (made.type !== 'FunctionExpression' || made.body.body.length !== 2) return undefined
  const last = made.body.body[1]
  if (last?.type !== 'ReturnStatement' || last.argument?.type !== 'ParenthesizedExpression') return undefined
  return last.argument.end === head.length + text.length + 2 ? last.argument.expression : undefined
}

const words = [
  ...['value', 'context', 'x', '1', '"a"', "'b'", '`', '${', '}', '{', '(', ')', '[', ']', '=>', '.', '?.', '...'],
  ...[',', ';', ':', '?', '+', '-', '--', '++', '!', '<', '>', '<!--', '-->', '<!', '/', '/*', '*/', '//', '*', '**'],
  ...['=', '==', '&&', '||', '??', '/x/', '/[', ']/', '\n', '\r', '\u2028', '\u2029', '\ufeff', '\0', '\ud800', '\\'],
  ...['function', 'return', 'class', 'new', 'new.target', 'super', 'import', 'import.meta', 'export', 'default'],
  ...['await', 'async', 'yield', 'let', 'const', 'var', 'if', 'else', 'for', 'of', 'in', 'while', 'do', 'break', 'l:'],
  ...['this', 'arguments', 'eval', 'typeof', 'void', 'delete', 'throw', 'try', 'catch', 'get', 'static', '#x', '#!'],
  ...['</script>', "'use strict'", ') }', '}) , (', ') })', '(function () { return (', '() => {', 'value[', 'value.'],
]
/** Often balanced, so that the checker accepts many. */
const soup = fc.letrec<{ one: string; some: string }>(tie => ({
  one: fc.oneof(
    { maxDepth: 4 },
    { weight: 6, arbitrary: fc.constantFrom('value', '1', '"a"', 'x => x', '/x/', '[]', '({})', '``', '-->', '<!--') },
    { weight: 3, arbitrary: fc.constantFrom(...words) },
    { weight: 2, arbitrary: tie('some').map(some => `(${some})`) },
    { weight: 2, arbitrary: tie('some').map(some => `value[${some}]`) },
    { weight: 1, arbitrary: tie('some').map(some => `\`\${${some}}\``) },
    { weight: 1, arbitrary: tie('some').map(some => `(() => { return ${some} })()`) },
    { weight: 1, arbitrary: fc.tuple(tie('one'), tie('one')).map(([a, b]) => `${a} <!--value[${b}\n]`) },
    { weight: 1, arbitrary: fc.tuple(tie('one'), tie('one')).map(([a, b]) => `${a}\n--> ${b}\n`) },
    {
      weight: 3,
      arbitrary: fc
        .tuple(tie('one'), fc.constantFrom('+', ',', '<', '<!--', '-->', '\n-->', '&&', '??', ' < !--'), tie('one'))
        .map(([a, between, b]) => a + between + b),
    },
  ),
  some: fc.oneof(
    { maxDepth: 4 },
    { weight: 3, arbitrary: tie('one') },
    { weight: 1, arbitrary: fc.array(tie('one'), { maxLength: 6 }).map(list => list.join(' ')) },
    { weight: 1, arbitrary: fc.array(fc.constantFrom(...words), { maxLength: 12 }).map(list => list.join('')) },
  ),
}))

test('an accepted text is one expression with the same tree in a script, in a module and alone (10,000 texts)', t => {
  let accepted = 0
  const property = fc.property(soup.some, text => {
    if (!isAccepted(text)) return
    accepted++
    const alone = parseExpressionAt(text, 0, { ecmaVersion: 2020, sourceType: 'module', preserveParens: true })
    const inside = insideOf(text)
    assert.ok(inside, `${JSON.stringify(text)} leaves the wrapper`)
    assert.deepEqual(shapeOf(inside, head.length), shapeOf(alone as AnyNode, 0), JSON.stringify(text))
  })
  fc.assert(property, { numRuns: 10_000 })
  t.diagnostic(`${accepted} accepted`)
  assert.ok(accepted > 1000, `only ${accepted} were accepted: too few to prove anything`)
})

test('the engine evaluates accepted texts as single expressions', async () => {
  for (const [expression, expected] of [
    ['value, 2', 2],
    ['{ a: value }', { a: 1 }],
    ['value // the end of the line is not the end of the program', 1],
    ['value /* \u2028 */', 1],
    ['"\u2028".length + value', 2],
    ['(value\n-\n-value)', 2],
    ['(() => { outer: for (;;) break outer; return value })()', 1],
  ] as const) {
    assert.equal(isAccepted(expression), true, expression)
    assert.deepEqual(await sandbox.evaluate({ expression, values: [1] }), [{ value: expected }], expression)
  }
})
