// Reads one expression with a real parser: what is wrong with it and where, and which names it uses. Called at load.

import { type AnyNode, type Comment, parseExpressionAt } from 'acorn'
import { didYouMean } from '../../api/did-you-mean.ts'
import { freeNames, visit } from './free-variables.ts'
import { PARAMETERS, PROGRAM_OFFSET, type ProgramProblem, parseProgram } from './program.ts'

/** `offset` counts characters of the expression from 0. */
export type ExpressionProblem = { readonly offset: number; readonly message: string }
export type Expression = { readonly names: ReadonlySet<string>; readonly problems: readonly ExpressionProblem[] }

const LONGEST = 16 * 1024
const DEEPEST = 200

/** What a patch may name besides what it is given: the part of the language that is the same every time. */
export const LANGUAGE = [
  ...['undefined', 'NaN', 'Infinity', 'Object', 'Array', 'String', 'Number', 'Boolean', 'BigInt', 'Symbol', 'Math'],
  ...['JSON', 'Date', 'RegExp', 'Map', 'Set', 'Error', 'TypeError', 'RangeError', 'SyntaxError', 'parseInt'],
  ...['parseFloat', 'isNaN', 'isFinite', 'encodeURIComponent', 'decodeURIComponent', 'encodeURI', 'decodeURI'],
] as const
const known: readonly string[] = [...PARAMETERS, ...LANGUAGE]

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
  const { node: root, problem } = read(text)
  if (!root) return { names, problems: problem ? [problem] : [] }
  const problems: ExpressionProblem[] = []
  visit(root, node => {
    const message = refused[node.type] ?? refusedFunction(node)
    if (message !== undefined) problems.push({ offset: node.start - PROGRAM_OFFSET, message })
  })
  for (const { name, start } of freeNames(root)) {
    names.add(name)
    if (!known.includes(name)) problems.push({ offset: start - PROGRAM_OFFSET, message: unknownName(name) })
  }
  // A problem with one part says more than a problem with the whole.
  if (problem && !problems.length) problems.push(problem)
  return { names, problems: problems.toSorted((one, other) => one.offset - other.offset) }
}

type Read =
  | { readonly node: AnyNode; readonly problem?: ExpressionProblem }
  | { readonly node?: undefined; readonly problem: ExpressionProblem }

/** `node` belongs to the program that runs: its offsets count from the start of that program. */
function read(text: string): Read {
  const problem = textProblem(text)
  if (problem) return { problem }
  try {
    const { node, problem: found } = parseProgram(text)
    if (!node) return { problem: diagnose(text) ?? programProblem(found) }
    return found ? { node, problem: programProblem(found) } : { node }
  } catch (error) {
    // The parser may report a place in the wrapper. A message about the text alone is easier to understand.
    return { problem: diagnose(text) ?? asProblem(text, error, PROGRAM_OFFSET) }
  }
}

/** Checks that come before parsing: the parser recurses, and the engine gets the text as UTF-8. */
function textProblem(text: string): ExpressionProblem | undefined {
  if (text.trim() === '') return { offset: 0, message: 'is empty; write an expression, e.g. "prefix-" + value' }
  const nul = text.indexOf('\0')
  if (nul >= 0) return { offset: nul, message: 'has a NUL character; write \\0 in a string' }
  const half = text.search(/\p{Surrogate}/u)
  if (half >= 0) return { offset: half, message: 'has half of a surrogate pair; write a \\u escape' }
  const tooDeep = deepestBracket(text)
  return tooDeep === undefined ? undefined : { offset: tooDeep, message: `is nested more than ${DEEPEST} deep` }
}

const programProblem = ({ offset, reason }: ProgramProblem): ExpressionProblem => ({
  offset,
  message:
    reason === 'html-comment'
      ? 'has an HTML-like comment (<!-- or -->), which is not allowed: use //, /* */, or blanks between operators'
      : 'must be exactly one expression',
})

/** A clearer message for a text that was refused already. It does not decide; parseProgram does. */
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
    return { offset, message: `is one expression and ends before ${JSON.stringify(text[offset])}: no statements` }
  } catch (error) {
    return asProblem(text, error)
  }
}

/** Acorn's own words end in a position, which callers show in theirs. */
function asProblem(text: string, error: unknown, shift = 0): ExpressionProblem {
  if (!(error instanceof SyntaxError)) return { offset: 0, message: 'is nested too deep to be read' }
  const at = ((error as SyntaxError & { pos?: number }).pos ?? 0) - shift
  const offset = Math.max(0, Math.min(at, text.length))
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
  const all = `an expression knows ${PARAMETERS.join(', ')}, and of the language ${LANGUAGE.slice(3, 7).join(', ')} …`
  return `"${name}" is not known${didYouMean(name, known) || `: ${all}`}`
}
