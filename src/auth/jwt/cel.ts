// Compiles the CEL expressions of auth.yaml: checked when the file is read, bounded when they run.

import { Environment, type ParseResult } from '@marcbachmann/cel-js'
import { isObject, type Json } from '../../api/object.ts'
import { CostError, meter, nodesOf, type PatternProblem } from './metered-ast.ts'

/** The variables of an expression: the claims of the token, or the user that the mapping gives. */
export type Scope = 'claims' | 'user'
export type ResultType = 'string' | 'strings' | 'bool' | 'value'

export type Expression = {
  /** Throws CelError. The result has the expected type. */
  evaluate(variable: unknown): unknown
  /** Whether it reads this field of its variable. */
  reads(field: string): boolean
}

/** Why an expression is invalid, with an offset in its text. */
export class ExpressionProblem extends Error {
  readonly offset: number
  constructor(message: string, offset: number) {
    super(message)
    this.offset = offset
  }
}

/** Why an evaluation failed. The message contains no claim. */
export class CelError extends Error {}

const maxExpression = 4096

const options = {
  enableOptionalTypes: true,
  // As in Kubernetes, where claims are dynamic.
  homogeneousAggregateLiterals: false,
  limits: { maxAstNodes: 1000, maxDepth: 50 },
}
const environments = {
  claims: new Environment(options).registerVariable('claims', 'map<string, dyn>'),
  user: new Environment(options).registerVariable('user', {
    schema: {
      username: 'string',
      uid: 'string',
      groups: 'list<string>',
      extra: 'map<string, list<string>>',
    },
  }),
}

const expected: { readonly [type in ResultType]: { readonly what: string; readonly types: readonly string[] } } = {
  string: { what: 'a string', types: ['string', 'dyn'] },
  strings: { what: 'a string or a list of strings', types: ['string', 'list<string>', 'list', 'list<T>', 'dyn'] },
  bool: { what: 'true or false', types: ['bool'] },
  value: { what: 'a string or a list of strings', types: ['string', 'list<string>', 'list', 'list<T>', 'dyn'] },
}

/** Throws ExpressionProblem. */
export function compile(text: string, scope: Scope, result: ResultType): Expression {
  if (text.trim() === '') throw new ExpressionProblem('requires an expression', 0)
  if (text.length > maxExpression)
    throw new ExpressionProblem(`the expression is longer than ${maxExpression} characters`, 0)
  const parsed = parse(text, scope)
  const { what, types } = expected[result]
  const { valid, type = '', error } = parsed.check()
  if (!valid) throw problemOf(error)
  // Optional types carry their own name, such as optional<dyn>.
  if (!types.includes(type)) throw new ExpressionProblem(`the expression must give ${what}, not ${type}`, 0)
  const patterns: PatternProblem[] = []
  const cost = meter(parsed.ast, patterns)
  const [pattern] = patterns
  if (pattern) throw new ExpressionProblem(pattern.message, pattern.offset)
  return {
    evaluate(variable) {
      try {
        cost.begin()
        const value: unknown = parsed({ [scope]: variable })
        cost.end()
        if (isOf(value, result)) return value
      } catch (error) {
        throw new CelError(reasonOf(error))
      }
      throw new CelError(`the result is not ${what}`)
    },
    reads: field => [...nodesOf(parsed.ast)].some(node => isAccess(node, scope, field)),
  }
}

function parse(text: string, scope: Scope): ParseResult {
  try {
    return environments[scope].parse(text)
  } catch (error) {
    throw problemOf(error)
  }
}

type LibraryError = { readonly summary?: string; readonly code?: string; readonly range?: { readonly start: number } }

/** The first line of the library's message; the rest repeats the expression. */
function problemOf(error: unknown): ExpressionProblem {
  const { summary, range } = (error ?? {}) as LibraryError
  return new ExpressionProblem(summary ?? 'the expression is invalid', range?.start ?? 0)
}

/** By code, because the message of the library may contain a claim. */
function reasonOf(error: unknown): string {
  if (error instanceof CostError) return error.message
  const { code } = error as LibraryError
  if (code === 'no_such_key') return 'the token lacks a claim that the expression reads'
  return `the evaluation failed${code ? ` (${code})` : ''}`
}

function isOf(value: unknown, result: ResultType): boolean {
  if (result === 'bool') return typeof value === 'boolean'
  if (typeof value === 'string') return true
  return result !== 'string' && Array.isArray(value) && value.every(one => typeof one === 'string')
}

type Access = { readonly op: string; readonly args: unknown }

function isAccess({ op, args }: Access, scope: Scope, field: string): boolean {
  if (!['.', '.?', '[]', '[?]'].includes(op)) return false
  const [from, key] = args as [Access, string | Access]
  const name = typeof key === 'string' ? key : key.args
  return from.op === 'id' && from.args === scope && name === field
}

/** Claims as CEL values. Maps, because a claim may be named like a member of Object. Whole numbers are ints, as in Kubernetes. */
export function celValue(value: Json | undefined): unknown {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value
  if (Array.isArray(value)) return value.map(one => celValue(one as Json))
  return isObject(value) ? new Map(Object.entries(value).map(([key, one]) => [key, celValue(one)])) : value
}
