// Evaluates untrusted expressions within time and memory limits, in worker threads.

import { readFile } from 'node:fs/promises'
import type { Json } from '../../api/object.ts'
import { GLOBALS } from './expression.ts'
import { openPool } from './sandbox-pool.ts'
import type { RealmInput, RealmOutput, Reason } from './sandbox-realm.ts'
import { openSandboxThread } from './sandbox-thread.ts'
import type { Answer, Failure, WorkerData } from './sandbox-worker.ts'

export type Limits = {
  /** Limit for a batch, plus `matchMs` per value. The thread interrupts the program itself. */
  readonly softMs: number
  readonly matchMs: number
  /** Multiple of the soft limit after which the thread is terminated. */
  readonly hardFactor: number
  readonly memoryBytes: number
  /** Maximum length of one result as JSON. */
  readonly outputBytes: number
  /** Limit for a batch that is evaluated value by value. */
  readonly totalMs: number
}

export type Batch = Omit<RealmInput, 'values'> & {
  /** Must be accepted by parseExpression. */
  readonly expression: string
  readonly values: readonly Json[]
}
/** `undefined` becomes `null`. */
export type Evaluated = { readonly value: Json } | { readonly reason: Reason; readonly message: string }

export type Sandbox = {
  /** Starts all threads. Otherwise they start on demand. */
  start(): Promise<void>
  /** Returns a result for every value, in order. Never rejects because of the program. */
  evaluate(batch: Batch): Promise<readonly Evaluated[]>
  close(): Promise<void>
}

const defaults: Limits = {
  softMs: 50,
  matchMs: 0.02,
  hardFactor: 5,
  memoryBytes: 16 * 1024 * 1024,
  outputBytes: 1024 * 1024,
  totalMs: 5000,
}
// The type library for Node lacks WebAssembly.
const wasm = (globalThis as unknown as { WebAssembly: { compile(bytes: Uint8Array): Promise<object> } }).WebAssembly
const MAX_VALUES = 4096
const MAX_CHARACTERS = 512 * 1024
const MAX_DEPTH = 100

export function openSandbox(options: { readonly workers?: number; readonly limits?: Partial<Limits> } = {}): Sandbox {
  const limits = { ...defaults, ...options.limits }
  let data: Promise<WorkerData> | undefined
  const pool = openPool(options.workers ?? 2, async () => {
    data ??= dataOf(limits).catch(error => {
      data = undefined // try again next time
      throw error
    })
    return openSandboxThread(await data)
  })

  function perform(batch: Batch): Promise<Answer> {
    const { expression: source, ...input } = batch
    const softMs = limits.softMs + limits.matchMs * batch.values.length
    return pool.perform({ source, input: JSON.stringify(input), softMs, hardMs: softMs * limits.hardFactor })
  }

  async function evaluateSome(batch: Batch): Promise<Evaluated[]> {
    const answer = await perform(batch)
    if ('output' in answer) return resultsOf(answer.output, limits)
    if (batch.values.length === 1) return [failedResult(answer, limits)]
    return oneByOne(batch)
  }

  /** Stops at the first failure, because the object is not written anyway. */
  async function oneByOne(batch: Batch): Promise<Evaluated[]> {
    const results: Evaluated[] = []
    const start = performance.now()
    for (const index of batch.values.keys()) {
      const isLate = performance.now() - start > limits.totalMs
      const [result] = isLate ? [tooLong(limits)] : await evaluateSome(part(batch, index, index + 1))
      results.push(result as Evaluated)
      if (result && 'reason' in result) break
    }
    const unknown: Evaluated = { reason: 'time', message: 'not evaluated, because an earlier value failed' }
    return batch.values.map((_, index) => results[index] ?? unknown)
  }

  return {
    async evaluate(batch) {
      const parts = await Promise.all(split(batch).map(evaluateSome))
      return parts.flat()
    },
    start: pool.start,
    close: pool.close,
  }
}

/** Compiles QuickJS once for all threads. */
async function dataOf({ memoryBytes, outputBytes }: Limits): Promise<WorkerData> {
  const file = await readFile(new URL(import.meta.resolve('quickjs-wasi/quickjs.wasm')))
  const module = await wasm.compile(file)
  return { module, memoryBytes, globals: GLOBALS, maxOutput: outputBytes, maxDepth: MAX_DEPTH }
}

/** Splits a batch into parts that fit into memory. */
function split(batch: Batch): Batch[] {
  const parts: Batch[] = []
  let from = 0
  let size = 0
  for (const [index, value] of batch.values.entries()) {
    const own = typeof value === 'string' ? value.length : JSON.stringify(value).length
    if (index > from && (size + own > MAX_CHARACTERS || index - from >= MAX_VALUES)) {
      parts.push(part(batch, from, index))
      from = index
      size = 0
    }
    size += own
  }
  return batch.values.length ? [...parts, part(batch, from, batch.values.length)] : []
}

function part(batch: Batch, from: number, to: number): Batch {
  const paths = batch.paths?.slice(from, to)
  return { ...batch, values: batch.values.slice(from, to), ...(paths && { paths }) }
}

function resultsOf(output: string, limits: Limits): Evaluated[] {
  const { values, failures } = JSON.parse(output) as RealmOutput
  const results: Evaluated[] = values.map(value => ({ value: value as Json }))
  for (const { index, reason, message } of failures)
    results[index] = reason === 'memory' ? tooMuch(limits) : { reason, message }
  return results
}

function failedResult(answer: Failure, limits: Limits): Evaluated {
  if (answer.failure === 'time') return { reason: 'time', message: `took longer than ${limits.softMs} ms` }
  if (answer.failure === 'memory') return tooMuch(limits)
  return { reason: 'threw', message: answer.message }
}

function tooMuch({ memoryBytes }: Limits): Evaluated {
  return { reason: 'memory', message: `needed more than ${Math.round(memoryBytes / 2 ** 20)} MiB of memory` }
}

function tooLong({ totalMs }: Limits): Evaluated {
  return { reason: 'time', message: `all matches together took longer than ${totalMs} ms` }
}
