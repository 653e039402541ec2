// Feeds every parser with mutated texts of its format. Inputs that reach new code, according to V8 coverage, are mutated further.

import { Session } from 'node:inspector/promises'
import type { Json } from '../../src/api/object.ts'
import { bend } from './raw-requests.ts'
import { type Dice, diceOf } from './seeded-random.ts'
import { openShapes, type Shape } from './shapes.ts'

export type Fed = {
  readonly name: string
  readonly texts: number
  /** Inputs that were mutated further. */
  readonly kept: number
  /** Milliseconds of the slowest input. */
  readonly slowest: number
  readonly problems: readonly string[]
}

/** The number of inputs between two coverage measurements. */
const together = 100
const mostKept = 400
const tooSlow = 2000

export async function runShapeFuzz(each: number, seed: string): Promise<readonly Fed[]> {
  const coverage = await openCoverage()
  const shapes = await openShapes()
  const fed: Fed[] = []
  for (const [name, shape] of Object.entries(shapes))
    fed.push(await feed(name, shape, each, diceOf(`${seed}/${name}`), coverage))
  await coverage.close()
  return fed
}

async function feed(name: string, shape: Shape, count: number, roll: Dice, coverage: Coverage): Promise<Fed> {
  const pool = [...shape.seeds]
  const problems: string[] = []
  let slowest = 0
  for (let texts = 0; texts < count && problems.length < 5; texts += together) {
    const batch = Array.from({ length: together }, () => bent(pool[roll(pool.length)] as string, roll))
    for (const text of batch) {
      const started = performance.now()
      const problem = await problemOf(shape, text)
      const took = performance.now() - started
      slowest = Math.max(slowest, took)
      if (took > tooSlow) problems.push(`${Math.round(took)} ms for ${JSON.stringify(text.slice(0, 300))}`)
      if (problem) problems.push(`${problem} for ${JSON.stringify(text.slice(0, 1000))}`)
    }
    if (pool.length < mostKept && (await coverage.hasGrown())) pool.push(...batch.slice(0, mostKept - pool.length))
  }
  return { name, texts: count, kept: pool.length - shape.seeds.length, slowest, problems }
}

async function problemOf({ may, read }: Shape, text: string): Promise<string | undefined> {
  try {
    await read(text)
  } catch (error) {
    if (!may.some(one => error instanceof one)) return error instanceof Error ? String(error.stack) : String(error)
    if (error instanceof Error && 'code' in error && error.code === 500) return String(error.stack)
  }
  return undefined
}

/** Mutates the text, or its structure if it is JSON. */
function bent(text: string, roll: Dice): string {
  if (roll(2)) return bend(text, roll)
  try {
    return JSON.stringify(bentValue(JSON.parse(text) as Json, roll))
  } catch {
    return bend(text, roll)
  }
}

const odd: readonly Json[] = [
  null,
  true,
  0,
  -1,
  1e308,
  '',
  'x',
  [],
  {},
  [[]],
  'a'.repeat(300),
  '\ud800',
  { __proto__: 1 },
]

function bentValue(value: Json, roll: Dice): Json {
  if (roll(6) === 0) return odd[roll(odd.length)] as Json
  if (Array.isArray(value)) {
    const at = roll(value.length + 1)
    return value.toSpliced(at, roll(2), bentValue((value[at] ?? null) as Json, roll))
  }
  if (typeof value !== 'object' || value === null) return roll(2) ? value : (odd[roll(odd.length)] as Json)
  const entries = Object.entries(value)
  const [key, inner] = entries[roll(entries.length || 1)] ?? ['', null]
  const name = roll(5) ? key : (['__proto__', 'constructor', '', 'metadata', '$patch'][roll(5)] as string)
  const changed = roll(6) ? [[name, bentValue(inner as Json, roll)] as const] : []
  return Object.fromEntries([...entries.filter(([one]) => one !== key), ...changed]) as Json
}

type Coverage = { hasGrown(): Promise<boolean>; close(): Promise<void> }

async function openCoverage(): Promise<Coverage> {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: false, detailed: true })
  const reached = new Set<string>()
  return {
    async hasGrown() {
      const before = reached.size
      const { result } = await session.post('Profiler.takePreciseCoverage')
      for (const { url, functions } of result)
        if (url.includes('/src/'))
          for (const { ranges } of functions)
            for (const { startOffset, endOffset, count } of ranges)
              if (count > 0) reached.add(`${url} ${startOffset} ${endOffset}`)
      return reached.size > before
    },
    async close() {
      await session.post('Profiler.stopPreciseCoverage')
      session.disconnect()
    },
  }
}
