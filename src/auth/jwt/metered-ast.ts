// Bounds the evaluation of a CEL expression: every step spends from a budget, as the cost limit of Kubernetes does.
// The library has no such limit. It evaluates a node by calling `evaluate` of the node, which this file wraps.

import { maxMatchedText, safePattern } from './safe-pattern.ts'

export class CostError extends Error {}

/** A node of the library's syntax tree. */
type Node = {
  readonly op: string
  readonly args: unknown
  readonly start: number
  readonly meta: object
  evaluate: Evaluate
}
type Evaluate = (this: Node, evaluator: Evaluator, node: Node, context: unknown) => unknown
type Evaluator = { run(node: Node, context: unknown): unknown }

/** Steps and list items. Expressions of real configurations use some hundred. */
const maxCost = 100_000
/** A string costs as many steps as it has pieces of this length. */
const pieceLength = 64

export type Metered = {
  /** Sets the budget for one evaluation. */
  begin(): void
  /** Throws CostError if the evaluation has spent more than the budget. */
  end(): void
}

export type PatternProblem = { readonly offset: number; readonly message: string }

/** Wraps every node of a tree that was type-checked. Returns the problems of patterns in `problems`. */
export function meter(root: unknown, problems: PatternProblem[]): Metered {
  let left = 0
  const spend = (cost: number) => {
    left -= cost
    if (left < 0) throw new CostError('the expression takes too many steps for these claims')
  }
  for (const node of nodesOf(root)) {
    const matches = matchesOf(node, problems)
    let evaluate = matches ?? node.evaluate
    const metered = (evaluator: Evaluator, self: Node, context: unknown) => {
      spend(1)
      const value = evaluate.call(node, evaluator, self, context)
      spend(sizeOf(value))
      return value
    }
    // The library replaces `evaluate` of a node with a faster one when it runs for the first time.
    const set = (faster: Evaluate) => {
      if (!matches) evaluate = faster
    }
    Object.defineProperty(node, 'evaluate', { get: () => metered, set })
  }
  return {
    begin: () => {
      left = maxCost
    },
    // The operators || and && and the macro exists() discard errors.
    end: () => spend(0),
  }
}

function sizeOf(value: unknown): number {
  if (typeof value === 'string') return value.length / pieceLength
  return Array.isArray(value) ? value.length : 0
}

/** The evaluation of `text.matches(pattern)`; undefined: another node. */
function matchesOf(node: Node, problems: PatternProblem[]): Evaluate | undefined {
  if (node.op !== 'rcall') return undefined
  const [name, receiver, [argument]] = node.args as [string, Node, Node[]]
  if (name !== 'matches') return undefined
  const { start: offset } = argument ?? node
  const isLiteral = argument?.op === 'value' && typeof argument.args === 'string'
  const pattern = isLiteral ? safePattern(argument.args as string) : 'the pattern must be a literal'
  if (typeof pattern === 'string') problems.push({ offset, message: `matches(): ${pattern}` })
  return (evaluator, _, context) => {
    const text = evaluator.run(receiver, context)
    if (typeof text !== 'string' || typeof pattern === 'string') throw new TypeError('matches() requires a string')
    if (text.length > maxMatchedText)
      throw new CostError(`matches() accepts at most ${maxMatchedText} characters of text`)
    return pattern.test(text)
  }
}

/** All nodes, including those that the library creates for macros. */
export function nodesOf(root: unknown): Set<Node> {
  const nodes = new Set<Node>()
  const seen = new Set<object>()
  const visit = (value: unknown) => {
    if (typeof value !== 'object' || value === null || seen.has(value)) return
    seen.add(value)
    if (Array.isArray(value)) for (const one of value) visit(one)
    else if (isNode(value)) {
      nodes.add(value)
      for (const one of Object.values(value)) visit(one)
      visit(value.meta)
    } else if (Object.getPrototypeOf(value) === Object.prototype) for (const one of Object.values(value)) visit(one)
  }
  visit(root)
  return nodes
}

const isNode = (value: object): value is Node =>
  'op' in value && 'meta' in value && typeof (value as Partial<Node>).evaluate === 'function'
