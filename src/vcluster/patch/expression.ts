// Reads one expression with a real parser: what is wrong with it and where, and which names it uses. Called at load.

import { type AnyNode, type Comment, parseExpressionAt } from 'acorn'
import { didYouMean } from '../../api/nearest.ts'
import { freeNames, visit } from './free-names.ts'

/** `offset` counts characters of the expression from 0. */
export type ExpressionProblem = { readonly offset: number; readonly message: string }
export type Expression = { readonly names: ReadonlySet<string>; readonly problems: readonly ExpressionProblem[] }

const LONGEST = 16 * 1024
const DEEPEST = 200

/** What a patch may name: what it is given, the three functions, and the part of the language that is the same every time. */
const BOUND = ['value', 'valueExists', 'context'] as const
const FUNCTIONS = ['atob', 'btoa', 'virtualToHostDNS'] as const
export const LANGUAGE = [
  ...['undefined', 'NaN', 'Infinity', 'Object', 'Array', 'String', 'Number', 'Boolean', 'BigInt', 'Symbol', 'Math'],
  ...['JSON', 'Date', 'RegExp', 'Map', 'Set', 'Error', 'TypeError', 'RangeError', 'SyntaxError', 'parseInt'],
  ...['parseFloat', 'isNaN', 'isFinite', 'encodeURIComponent', 'decodeURIComponent', 'encodeURI', 'decodeURI'],
] as const
const known: readonly string[] = [...BOUND, ...FUNCTIONS, ...LANGUAGE]

/** Node types that are an expression to the grammar and not to us: each would need time, modules or code of its own. */
const refused: { readonly [type: string]: string } = {
  AwaitExpression: '"await" is not allowed: an expression gives its result at once',
  YieldExpression: '"yield" is not allowed: an expression gives one result',
  ImportExpression: '"import" is not allowed: an expression reaches nothing outside itself',
  MetaProperty: 'import.meta and new.target are not allowed',
}

export function parseExpression(text: string): Expression {
  const names = new Set<string>()
  if (text.length > LONGEST)
    return { names, problems: [{ offset: LONGEST, message: `has over ${LONGEST} characters` }] }
  const tree = read(text)
  if ('message' in tree) return { names, problems: [tree] }
  const problems: ExpressionProblem[] = []
  visit(tree.node, node => {
    const message = refused[node.type] ?? refusedFunction(node)
    if (message !== undefined) problems.push({ offset: node.start, message })
  })
  for (const { name, start } of freeNames(tree.node)) {
    names.add(name)
    if (!known.includes(name)) problems.push({ offset: start, message: unknownName(name) })
  }
  return { names, problems: problems.toSorted((one, other) => one.offset - other.offset) }
}

function read(text: string): { readonly node: AnyNode } | ExpressionProblem {
  if (text.trim() === '') return { offset: 0, message: 'is empty; write an expression, e.g. "prefix-" + value' }
  const tooDeep = deepestBracket(text)
  if (tooDeep !== undefined) return { offset: tooDeep, message: `is nested more than ${DEEPEST} deep` }
  try {
    const comments: Comment[] = []
    const node = parseExpressionAt(text, 0, {
      ecmaVersion: 2020,
      sourceType: 'module',
      preserveParens: true,
      onComment: comments,
    })
    const rest = blankOut(text, comments).slice(node.end)
    if (rest.trim() === '') return { node: node as AnyNode }
    const offset = node.end + rest.search(/\S/)
    return { offset, message: `is one expression and ends before ${JSON.stringify(text[offset])}: no statements` }
  } catch (error) {
    return asProblem(text, error)
  }
}

/** Acorn's own words end in a position, which callers show in theirs. */
function asProblem(text: string, error: unknown): ExpressionProblem {
  if (!(error instanceof SyntaxError)) return { offset: 0, message: 'is nested too deep to be read' }
  const offset = Math.min((error as SyntaxError & { pos?: number }).pos ?? 0, text.length)
  const statement = /^\s*(let|const|var|if|for|while|do|return|throw|switch|try|import|export|with|debugger)\b/.exec(
    text,
  )
  if (statement && offset <= statement[0].length + 1)
    return { offset, message: `"${statement[1]}" begins a statement, and only an expression is allowed` }
  if (/\b(await|async)\b/.test(text.slice(Math.max(0, offset - 6), offset + 6)))
    return { offset, message: refused['AwaitExpression'] as string }
  return { offset, message: error.message.replace(/ \(\d+:\d+\)$/, '') }
}

function blankOut(text: string, comments: readonly Comment[]): string {
  let out = text
  for (const { start, end } of comments) out = out.slice(0, start) + ' '.repeat(end - start) + out.slice(end)
  return out
}

/** Counted before parsing, because the parser recurses. Brackets in strings count too: nobody writes 200 of them. */
function deepestBracket(text: string): number | undefined {
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    if ('([{'.includes(text[at] as string)) depth++
    else if (')]}'.includes(text[at] as string)) depth--
    if (depth > DEEPEST) return at
  }
  return undefined
}

function refusedFunction(node: AnyNode): string | undefined {
  if (node.type !== 'FunctionExpression' && node.type !== 'FunctionDeclaration') {
    return node.type === 'ArrowFunctionExpression' && node.async ? refused['AwaitExpression'] : undefined
  }
  if (node.async) return refused['AwaitExpression']
  return node.generator ? refused['YieldExpression'] : undefined
}

function unknownName(name: string): string {
  if (name === 'eval' || name === 'Function') return `"${name}" is not allowed: an expression makes no code`
  const all = `an expression knows ${[...BOUND, ...FUNCTIONS].join(', ')}, and of the language ${LANGUAGE.slice(3, 7).join(', ')} …`
  return `"${name}" is not known${didYouMean(name, known) || `: ${all}`}`
}
