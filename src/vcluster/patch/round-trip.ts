// Whether reverseExpression undoes expression: on the values an object has, and on others like them. For the preview.

import type { Json, JsonObject } from '../../api/object.ts'
import { isSame } from './edit.ts'
import { parseExpression } from './expression.ts'
import type { Patch } from './patch.ts'
import { matchPath, parsePath, showPath } from './path.ts'
import type { Batch, Evaluated, Sandbox } from './sandbox.ts'

/** For one patch: how many values came back the same, those that did not, and those that the expression does not take. */
export type RoundTrip = {
  readonly index: number
  readonly path: string
  readonly held: number
  readonly refused: number
  readonly broken: readonly { readonly value: Json; readonly there: Json; readonly back: Json | string }[]
  /** Why nothing was tried. */
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
  const base = { index, path: showPath(path), held: 0, refused: 0, broken: [] }
  const { expression, reverseExpression } = patch
  if (expression === undefined && reverseExpression === undefined) return { ...base, skipped: 'is a reference' }
  if (expression === undefined || reverseExpression === undefined)
    return { ...base, skipped: `has no ${expression === undefined ? 'expression' : 'reverseExpression'}` }
  const { matches } = matchPath(options.object, path)
  const own = matches.map(({ value }) => value)
  const made = own.some(value => typeof value !== 'string') ? others : []
  const likes = own.flatMap(value => (typeof value === 'string' ? [`${value}x`, `x${value}`, value + value] : []))
  const first: Json[] = [...own, ...likes, ...texts.filter(() => !made.length), ...made]
  const once = await evaluate(expression, first, base.path, options)
  // What the expression gave is a value too: a prefix that is there already is where many reverses go wrong.
  const values = [
    ...first,
    ...once.flatMap(result => ('value' in result && result.value !== null ? [result.value] : [])),
  ]
  const there = await evaluate(expression, values, base.path, options)
  const taken = values.flatMap((value, at) => {
    const result = there[at]
    return result && 'value' in result && result.value !== null ? [{ value, there: result.value }] : []
  })
  const back = await evaluate(
    reverseExpression,
    taken.map(one => one.there),
    base.path,
    options,
  )
  const broken = taken.flatMap((one, at) => {
    const result = back[at] as Evaluated
    if ('value' in result && isSame(result.value, one.value)) return []
    return [{ ...one, back: 'value' in result ? result.value : result.message }]
  })
  return { ...base, held: taken.length - broken.length, refused: values.length - taken.length, broken }
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
