// The cost prover: the cost of one request of a signed-in user is in proportion to its size, and it never blocks the main thread for long.
// It covers every kind, every kind of write and every field that can grow, and bodies with costly shapes.

import type { Kind } from '../../../src/api/kind.ts'
import { kinds } from '../../../src/kinds/index.ts'
import { ask, type Input, judge } from './limits.ts'
import { shapes } from './shapes.ts'
import { type Stretch, stretches } from './stretched-objects.ts'
import { openSystem } from './system.ts'
import { collection, named, target, type Way, ways } from './write-requests.ts'

export type Finding = { readonly what: string; readonly problem: string }
/** `longest`: milliseconds of uninterrupted CPU time. */
type Measured = { readonly what: string; readonly longest: number }
export type Proof = {
  readonly measured: number
  /** Sorted by cost, highest first. */
  readonly worst: readonly Measured[]
  readonly findings: readonly Finding[]
}

const mostWorst = 20

/** `chosen`: selects the inputs to measure. */
export async function proveCost(chosen: (what: string) => boolean = () => true): Promise<Proof> {
  const system = await openSystem()
  const findings: Finding[] = []
  let measured = 0
  let worst: readonly Measured[] = []
  try {
    for (const input of targets()) await ask(system, input)
    for (const { what, half, whole } of inputs(chosen)) {
      const sending = (input: Input) => () => ask(system, input)
      const found = await judge(half && sending(half), sending(whole))
      measured++
      worst = [...worst, { what, longest: found.whole.longest }]
        .sort((a, b) => b.longest - a.longest)
        .slice(0, mostWorst)
      if (found.problem) findings.push({ what, problem: found.problem })
    }
  } finally {
    await system.close()
  }
  return { measured, worst, findings }
}

/** A request at a size, and at half of it. */
type Pair = { readonly what: string; readonly half: Input | undefined; readonly whole: Input }

const written = kinds.filter(one => one.served && one.verbs.includes('create'))

/** Creates the objects that the inputs change. */
export function* targets(): Generator<Input> {
  for (const kind of written.filter(one => one.stored))
    yield {
      method: 'POST',
      url: collection(kind),
      type: 'application/json',
      body: JSON.stringify(named(kind, kind.sample, target)),
    }
}

/** `chosen` gets a field and a kind of write, each of which has several inputs. */
export function* inputs(chosen: (what: string) => boolean): Generator<Pair> {
  for (const { what, make } of shapes) if (chosen(what)) yield { what, half: make(0.5), whole: make(1) }
  for (const kind of written)
    for (const stretch of stretches(kind))
      for (const way of ways) {
        const what = `${kind.kind} ${stretch.path} by ${way.name}`
        if (chosen(what)) yield* stretched(what, kind, stretch, way)
      }
}

/** At the limit of the field, at twice the limit, which the server rejects, and at the maximum size of a body. */
function* stretched(what: string, kind: Kind, { most, inBody, make }: Stretch, way: Way): Generator<Pair> {
  const at = (count: number) => way.request(kind, make(Math.floor(count)))
  const whole = at(most)
  // Protobuf has fewer fields than the schema. A body that does not grow measures nothing.
  if (!whole || whole.body.length === at(most / 2)?.body.length) return
  yield { what: `${what}, at its limit`, half: at(most / 2), whole }
  const double = at(most * 2)
  if (double) yield { what: `${what}, beyond its limit`, half: undefined, whole: double }
  // The library that writes block YAML takes seconds for bodies of this size. Flow YAML is as costly to read.
  if (inBody <= most * 2 || way.name === 'create by YAML in blocks') return
  const body = at(inBody)
  if (body) yield { what: `${what}, as much as a body holds`, half: at(inBody / 2), whole: body }
}
