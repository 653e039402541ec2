// The words of the console: all of them are in the catalogue src/console/text, and dates are local.

import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { parseSync } from 'vite'

const root = join(import.meta.dirname, '../..')
const catalogue = 'src/console/text/'
const formats = 'src/console/ui/format.ts'

/** A node of the syntax tree. */
type Node = { readonly type: string; readonly start: number; readonly [field: string]: unknown }

const isNode = (value: unknown): value is Node => typeof (value as Node | null)?.type === 'string'
const inside = (node: Node): readonly Node[] => Object.values(node).flat().filter(isNode)

/** Attributes that nobody reads or hears. All others are for people, also those of our own components. */
const technical =
  /^(?:on[A-Z].*|data-.*|aria-(?:activedescendant|controls|describedby|disabled|hidden|current|sort)|className|style|id|htmlFor|href|key|role|scope|slot|type|name|path|to|search|look|tone|action|placement|autoComplete|d|fill|stroke\w*|viewBox|width|height|rx)$/

const hasWords = (text: string) => /\p{L}{2}/u.test(text)
const isSentence = (text: string) => /^\p{Lu}\p{Ll}*,? [\p{L}·]/u.test(text)

/** The text of a literal, with a dot for each value in a template. */
function textOf(node: Node): string | undefined {
  if (node.type === 'JSXText' || (node.type === 'Literal' && typeof node['value'] === 'string'))
    return String(node['value'])
  if (node.type !== 'TemplateLiteral') return undefined
  const parts = node['quasis'] as readonly { readonly value: { readonly cooked: string } }[]
  return parts.map(({ value }) => value.cooked).join('·')
}

/** Expressions that can be the value of an expression. Conditions and arguments are not, but functions such as those of `map` are called. */
function outcomes(node: Node): readonly Node[] {
  const at = (...fields: readonly string[]) => fields.flatMap(field => [node[field]].flat().filter(isNode))
  if (node.type === 'ConditionalExpression') return at('consequent', 'alternate')
  if (node.type === 'LogicalExpression') return at('left', 'right')
  if (node.type === 'BinaryExpression') return node['operator'] === '+' ? at('left', 'right') : []
  if (node.type === 'CallExpression') return at('arguments').filter(({ type }) => type === 'ArrowFunctionExpression')
  if (node.type === 'ArrowFunctionExpression') return at('body')
  if (node.type === 'Property') return at('value')
  if (node.type === 'TemplateLiteral') return at('expressions')
  const isTransparent =
    /^(?:JSXExpressionContainer|ArrayExpression|ObjectExpression|TSAsExpression|TSSatisfiesExpression)$/
  return isTransparent.test(node.type) ? inside(node) : []
}

function shownWords(node: Node): readonly string[] {
  const own = textOf(node) ?? ''
  return [...(hasWords(own) ? [own] : []), ...outcomes(node).flatMap(shownWords)]
}

/** Words in the source of a component that people see or hear. */
function wordsIn(path: string, source: string): readonly string[] {
  const { program, errors } = parseSync(path, source)
  assert.deepEqual(errors, [], path)
  const found: string[] = []
  const visit = (node: Node): void => {
    if (node.type === 'ImportDeclaration') return
    if (node.type === 'JSXAttribute') {
      const { type, name } = node['name'] as { readonly type: string; readonly name: string }
      const isTechnical = type === 'JSXIdentifier' && technical.test(name)
      if (!isTechnical && isNode(node['value'])) found.push(...shownWords(node['value']))
    } else if (node.type === 'JSXElement' || node.type === 'JSXFragment')
      found.push(...(node['children'] as readonly Node[]).flatMap(shownWords))
    else if (isSentence(textOf(node) ?? '')) found.push(textOf(node) ?? '')
    inside(node).forEach(visit)
  }
  visit(program as unknown as Node)
  return [...new Set(found.map(words => words.trim()))]
}

const sources = globSync('src/console/**/*.{ts,tsx}', { cwd: root })
  .filter(path => !path.endsWith('.test.ts'))
  .toSorted()
  .map(path => ({ path, source: readFileSync(join(root, path), 'utf8') }))

test('all words of the console are in the catalogue', () => {
  const problems = sources
    .filter(({ path }) => !path.startsWith(catalogue))
    .flatMap(({ path, source }) => wordsIn(path, source).map(words => `${path}: "${words}"`))
  assert.equal(problems.length, 0, `move these words to ${catalogue}\n${problems.join('\n')}`)
})

test('the check finds words in every place of a component', () => {
  const found = (jsx: string) => wordsIn('example.tsx', `export const Example = () => ${jsx}`)
  assert.deepEqual(found('<p>Hello</p>'), ['Hello'])
  assert.deepEqual(found(`<p>{isOn ? 'Hide' : text.show}</p>`), ['Hide'])
  assert.deepEqual(found(`<p>{\`Version \${number}\`}</p>`), ['Version ·'])
  for (const name of ['aria-label', 'label', 'title', 'placeholder', 'description', 'alt', 'children', 'nothing'])
    assert.deepEqual(found(`<Some ${name}="Hello" />`), ['Hello'], name)
  assert.deepEqual(found(`<Facts of={list.map(one => ['Owner', one])} />`), ['Owner'])
  assert.deepEqual(wordsIn('example.ts', `const problem = 'This key exists already.'`), ['This key exists already.'])
  assert.deepEqual(found(`<p className="wide" title={text.title('of')}>{kind === 'Team' ? '–' : ago(time)} · </p>`), [])
})

test('times and numbers are formatted in one file', () => {
  const formatted = /\bIntl\.(?:DateTimeFormat|RelativeTimeFormat|NumberFormat)\b|\.toLocale(?:Date|Time)?String\(/
  const others = sources.filter(({ path, source }) => path !== formats && formatted.test(source))
  assert.deepEqual(
    others.map(({ path }) => path),
    [],
  )
})
