// Checks that reverseExpression reverses expression, with the values of an object and generated ones.

import type { Json, JsonObject } from '../../api/object.ts'
import { isSame } from './edit.ts'
import { parseExpression } from './expression.ts'
import type { Patch } from './patch.ts'
import { matchPath, parsePath, showPath } from './path.ts'
import type { Batch, Evaluated, Sandbox } from './sandbox.ts'

/** Result of one patch: values that round-trip, values that do not (`broken`), and values that the expression rejects. */
export type RoundTrip = {
  readonly index: number
  readonly path: string
  readonly passed: number
  readonly rejected: number
  readonly broken: readonly { readonly value: Json; readonly there: Json; readonly back: Json | string }[]
  /** Why the patch was not checked. */
  readonly skipped?: string
}

export type RoundTripOptions = {
  readonly patches: readonly Patch[]
  readonly object: JsonObject
  readonly sandbox: Sandbox
  readonly context: NonNullable<Batch['context']>
  readonly dns?: Batch['dns']
}

const texts = [
  ...['', 'a', 'A', '0', '-', '.', ' ', 'a b', 'a.b', 'a-b', 'a/b', 'a,b', 'a=b', 'ä€😀', 'null', 'true', '42', '"'],
  ...['x'.repeat(63), 'x'.repeat(300), '10.0.0.1', '::1', 'web.default.svc', 'web.default.svc.cluster.local', 'YQ=='],
]
const others: readonly Json[] = [0, 1, -1, 80, 65_535, 1.5, true, false, [], {}, ['a'], { a: 'b' }]

export async function checkRoundTrip(options: RoundTripOptions): Promise<readonly RoundTrip[]> {
  return Promise.all(options.patches.map((patch, index) => checkOne(patch, index, options)))
}

async function checkOne(patch: Patch, index: number, options: RoundTripOptions): Promise<RoundTrip> {
  const path = parsePath(patch.path)
  const base = { index, path: showPath(path), passed: 0, rejected: 0, broken: [] }
  const { expression, reverseExpression } = patch
  if (expression === undefined && reverseExpression === undefined) return { ...base, skipped: 'is a reference' }
  if (expression === undefined || reverseExpression === undefined)
    return { ...base, skipped: `has no ${expression === undefined ? 'expression' : 'reverseExpression'}` }
  const { matches } = matchPath(options.object, path)
  const own = matches.map(({ value }) => value)
  const generated = own.some(value => typeof value !== 'string') ? others : []
  const variants = own.flatMap(value => (typeof value === 'string' ? [`${value}x`, `x${value}`, value + value] : []))
  const first: Json[] = [...own, ...variants, ...texts.filter(() => !generated.length), ...generated]
  const results = await evaluate(expression, first, base.path, options)
  // Also use the results as inputs: many reverse expressions fail if a prefix already exists.
  const values = [
    ...first,
    ...results.flatMap(result => ('value' in result && result.value !== null ? [result.value] : [])),
  ]
  const there = await evaluate(expression, values, base.path, options)
  const accepted = values.flatMap((value, at) => {
    const result = there[at]
    return result && 'value' in result && result.value !== null ? [{ value, there: result.value }] : []
  })
  const back = await evaluate(
    reverseExpression,
    accepted.map(one => one.there),
    base.path,
    options,
  )
  const broken = accepted.flatMap((one, at) => {
    const result = back[at] as Evaluated
    if ('value' in result && isSame(result.value, one.value)) return []
    return [{ ...one, back: 'value' in result ? result.value : result.message }]
  })
  return { ...base, passed: accepted.length - broken.length, rejected: values.length - accepted.length, broken }
}

function evaluate(expression: string, values: readonly Json[], path: string, options: RoundTripOptions) {
  const { names } = parseExpression(expression)
  const { context, dns } = options
  return options.sandbox.evaluate({
    expression,
    values,
    ...(names.has('context') && { context, paths: values.map(() => path) }),
    ...(dns && { dns }),
  })
}
