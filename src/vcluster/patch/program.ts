// Builds and parses the program that runs an expression. The checker and the sandbox use it, so both see the same text.

import { type AnyNode, type Expression, type Options, type Program, parse } from 'acorn'
import { visit } from './free-variables.ts'

/** Names bound for an expression, in the order in which the realm passes their values. */
export const PARAMETERS = ['value', 'valueExists', 'context', 'atob', 'btoa', 'virtualToHostDNS'] as const

const head = `(function (${PARAMETERS.join(', ')}) { 'use strict'; return (`
// The line break ends a line comment at the end of the expression.
const tail = '\n) })'

/** Start of the expression in its program. */
export const PROGRAM_OFFSET = head.length

export const programOf = (expression: string): string => head + expression + tail

const options = { ecmaVersion: 2020, preserveParens: true } as const satisfies Options

/** Why a program must not run. `offset` counts characters of the expression. */
export type ProgramProblem = { readonly offset: number; readonly reason: 'html-comment' | 'not-one-expression' }

/** `node` is absent if the wrapper holds anything but one expression. Its offsets count from the start of the program. */
type Parsed =
  | { readonly node: Expression; readonly problem?: ProgramProblem }
  | { readonly node?: undefined; readonly problem: ProgramProblem }

/**
 * Parses the program of an expression. Throws acorn's SyntaxError if the text is not a program.
 *
 * The engine runs scripts. A script has HTML-like comments (`<!--`, `-->`) where a module has operators, so the two can see
 * different brackets. The program must therefore have the same tree as a module and as a script.
 */
export function parseProgram(expression: string): Parsed {
  const text = programOf(expression)
  const asModule = parse(text, { ...options, sourceType: 'module' })
  const node = wrapped(asModule, expression.length)
  if (!node) return { problem: { offset: 0, reason: 'not-one-expression' } }
  const { program, htmlComment } = readScript(text)
  if (htmlComment !== undefined) return { node, problem: { offset: htmlComment - head.length, reason: 'html-comment' } }
  const isSame = program && positionsIn(program) === positionsIn(asModule)
  return isSame ? { node } : { node, problem: { offset: 0, reason: 'not-one-expression' } }
}

/** The expression between head and tail. undefined: the program is not one function with one `return` of the whole text. */
function wrapped({ body }: Program, length: number): Expression | undefined {
  const [statement] = body
  if (body.length !== 1 || statement?.type !== 'ExpressionStatement') return undefined
  const outer = statement.expression
  const wrapper = outer.type === 'ParenthesizedExpression' ? outer.expression : undefined
  if (wrapper?.type !== 'FunctionExpression' || wrapper.params.length !== PARAMETERS.length) return undefined
  const [directive, returned, ...more] = wrapper.body.body
  if (directive?.type !== 'ExpressionStatement' || directive.directive !== 'use strict' || more.length) return undefined
  const result = returned?.type === 'ReturnStatement' ? returned.argument : undefined
  if (result?.type !== 'ParenthesizedExpression') return undefined
  // These parentheses must be the wrapper's own: the last character of the head and the second of the tail.
  const isWhole = result.start === head.length - 1 && result.end === head.length + length + 2
  return isWhole ? result.expression : undefined
}

/** Reads the text as the engine does. `program` is absent if it is not a script. */
function readScript(text: string): { readonly program?: Program; readonly htmlComment?: number } {
  let htmlComment: number | undefined
  const onComment = (_isBlock: boolean, _text: string, start: number) => {
    if (text[start] !== '/') htmlComment ??= start
  }
  const found = () => (htmlComment === undefined ? {} : { htmlComment })
  try {
    const program = parse(text, { ...options, sourceType: 'script', onComment })
    return { program, ...found() }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    // An HTML-like comment that hides a bracket causes the error: report the comment.
    return found()
  }
}

function positionsIn(root: AnyNode): string {
  const positions: string[] = []
  visit(root, ({ type, start, end }) => positions.push(`${type} ${start} ${end}`))
  return positions.join('\n')
}
