// Parses and checks a patch expression, and finds the names it uses.

import { type AnyNode, type Comment, parseExpressionAt } from 'acorn'
import { didYouMean } from '../../api/did-you-mean.ts'
import { freeVariables, visit } from './free-variables.ts'
import { PARAMETERS, PROGRAM_OFFSET, type ProgramProblem, parseProgram } from './program.ts'

/** `offset` counts characters of the expression from 0. */
export type ExpressionProblem = { readonly offset: number; readonly message: string }
export type Expression = { readonly names: ReadonlySet<string>; readonly problems: readonly ExpressionProblem[] }

const MAX_LENGTH = 16 * 1024
const MAX_DEPTH = 200

/** Globals that an expression may use: the deterministic part of the language. */
export const GLOBALS = [
  ...['undefined', 'NaN', 'Infinity', 'Object', 'Array', 'String', 'Number', 'Boolean', 'BigInt', 'Symbol', 'Math'],
  ...['JSON', 'Date', 'RegExp', 'Map', 'Set', 'Error', 'TypeError', 'RangeError', 'SyntaxError', 'parseInt'],
  ...['parseFloat', 'isNaN', 'isFinite', 'encodeURIComponent', 'decodeURIComponent', 'encodeURI', 'decodeURI'],
] as const
const known: readonly string[] = [...PARAMETERS, ...GLOBALS]

/** Expressions of the grammar that are not allowed here. */
const notAllowed: { readonly [type: string]: string } = {
  AwaitExpression: '"await" is not allowed: an expression is synchronous',
  YieldExpression: '"yield" is not allowed: an expression has one result',
  ImportExpression: '"import" is not allowed: an expression cannot load modules',
  MetaProperty: 'import.meta and new.target are not allowed',
}

export function parseExpression(text: string): Expression {
  const names = new Set<string>()
  if (text.length > MAX_LENGTH)
    return { names, problems: [{ offset: MAX_LENGTH, message: `has more than ${MAX_LENGTH} characters` }] }
  const { node: root, problem } = read(text)
  if (!root) return { names, problems: problem ? [problem] : [] }
  const problems: ExpressionProblem[] = []
  visit(root, node => {
    const message = notAllowed[node.type] ?? notAllowedFunction(node)
    if (message !== undefined) problems.push({ offset: node.start - PROGRAM_OFFSET, message })
  })
  for (const { name, start } of freeVariables(root)) {
    names.add(name)
    if (!known.includes(name)) problems.push({ offset: start - PROGRAM_OFFSET, message: unknownName(name) })
  }
  // A problem of one part is more helpful than one of the whole.
  if (problem && !problems.length) problems.push(problem)
  return { names, problems: problems.toSorted((one, other) => one.offset - other.offset) }
}

type Read =
  | { readonly node: AnyNode; readonly problem?: ExpressionProblem }
  | { readonly node?: undefined; readonly problem: ExpressionProblem }

/** Offsets of `node` count from the start of the program, not of the expression. */
function read(text: string): Read {
  const problem = textProblem(text)
  if (problem) return { problem }
  try {
    const { node, problem: found } = parseProgram(text)
    if (!node) return { problem: diagnose(text) ?? programProblem(found) }
    return found ? { node, problem: programProblem(found) } : { node }
  } catch (error) {
    // The parser may report a position in the wrapper, so diagnose the expression alone first.
    return { problem: diagnose(text) ?? asProblem(text, error, PROGRAM_OFFSET) }
  }
}

/** Checks before parsing: the parser is recursive, and the engine gets the text as UTF-8. */
function textProblem(text: string): ExpressionProblem | undefined {
  if (text.trim() === '') return { offset: 0, message: 'is empty; write an expression, e.g. "prefix-" + value' }
  const nul = text.indexOf('\0')
  if (nul >= 0) return { offset: nul, message: 'has a NUL character; write \\0 in a string' }
  const half = text.search(/\p{Surrogate}/u)
  if (half >= 0) return { offset: half, message: 'has a lone surrogate; use a \\u escape' }
  const tooDeep = deepestBracket(text)
  return tooDeep === undefined ? undefined : { offset: tooDeep, message: `is nested more than ${MAX_DEPTH} deep` }
}

const programProblem = ({ offset, reason }: ProgramProblem): ExpressionProblem => ({
  offset,
  message:
    reason === 'html-comment'
      ? 'has an HTML-like comment (<!-- or -->), which is not allowed: use //, /* */, or spaces between operators'
      : 'must be exactly one expression',
})

/** Finds a clearer message for an expression that parseProgram rejected. */
function diagnose(text: string): ExpressionProblem | undefined {
  try {
    const comments: Comment[] = []
    const { end } = parseExpressionAt(text, 0, {
      ecmaVersion: 2020,
      sourceType: 'module',
      preserveParens: true,
      onComment: comments,
    })
    const rest = blankOut(text, comments).slice(end)
    if (rest.trim() === '') return undefined
    const offset = end + rest.search(/\S/)
    return { offset, message: `must be one expression, but it ends before ${JSON.stringify(text[offset])}` }
  } catch (error) {
    return asProblem(text, error)
  }
}

/** Removes the position from acorn's message, because callers print their own. */
function asProblem(text: string, error: unknown, shift = 0): ExpressionProblem {
  if (!(error instanceof SyntaxError)) return { offset: 0, message: 'is nested too deeply' }
  const at = ((error as SyntaxError & { pos?: number }).pos ?? 0) - shift
  const offset = Math.max(0, Math.min(at, text.length))
  const statement = /^\s*(let|const|var|if|for|while|do|return|throw|switch|try|import|export|with|debugger)\b/.exec(
    text,
  )
  if (statement && offset <= statement[0].length + 1)
    return { offset, message: `"${statement[1]}" starts a statement, but only an expression is allowed` }
  if (/\b(await|async)\b/.test(text.slice(Math.max(0, offset - 6), offset + 6)))
    return { offset, message: notAllowed['AwaitExpression'] as string }
  return { offset, message: error.message.replace(/ \(\d+:\d+\)$/, '') }
}

function blankOut(text: string, comments: readonly Comment[]): string {
  let out = text
  for (const { start, end } of comments) out = out.slice(0, start) + ' '.repeat(end - start) + out.slice(end)
  return out
}

/** Runs before the recursive parser. Also counts brackets in strings, where 200 are unlikely. */
function deepestBracket(text: string): number | undefined {
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    if ('([{'.includes(text[at] as string)) depth++
    else if (')]}'.includes(text[at] as string)) depth--
    if (depth > MAX_DEPTH) return at
  }
  return undefined
}

function notAllowedFunction(node: AnyNode): string | undefined {
  if (node.type !== 'FunctionExpression' && node.type !== 'FunctionDeclaration') {
    return node.type === 'ArrowFunctionExpression' && node.async ? notAllowed['AwaitExpression'] : undefined
  }
  if (node.async) return notAllowed['AwaitExpression']
  return node.generator ? notAllowed['YieldExpression'] : undefined
}

function unknownName(name: string): string {
  if (name === 'eval' || name === 'Function') return `"${name}" is not allowed: an expression cannot create code`
  const all = `available are ${PARAMETERS.join(', ')}, and globals such as ${GLOBALS.slice(3, 7).join(', ')}`
  return `unknown name "${name}"${didYouMean(name, known) || `: ${all}`}`
}
