// Worker thread that runs untrusted expressions in QuickJS (WebAssembly) and resets its memory after every batch.

import { parentPort, workerData } from 'node:worker_threads'
import { EvalFlags, JSException, QuickJS } from 'quickjs-wasi'
import { programOf } from './program.ts'
import { makeFunctions } from './sandbox-functions.ts'
import { prepareRealm, type RealmOptions } from './sandbox-realm.ts'

export type WorkerData = RealmOptions & { readonly module: object; readonly memoryBytes: number }
export type Job = { readonly source: string; readonly input: string; readonly softMs: number }
/** `failure` concerns the whole batch; failures of single values are in `output`. */
export type Answer = ({ readonly output: string } | Failure) & {
  /** The memory cannot be reset: the thread must be terminated. */
  readonly spent?: boolean
  /** Total CPU time of the thread in milliseconds. */
  readonly cpuMs?: number
}
export type Failure = { readonly failure: 'time' | 'memory' | 'broken'; readonly message: string }

/** The used part of WebAssembly.Memory, which the type library for Node lacks. */
type Memory = { readonly buffer: ArrayBuffer }

const { module, memoryBytes, ...options } = workerData as WorkerData
const STACK_BYTES = 256 * 1024
const PAGE = 4096
const MAX_COMPILED = 256

let memory: Memory | undefined
let started = 0
let startedCpu = 0
let softMs = Number.POSITIVE_INFINITY

const vm = await QuickJS.create({
  wasm: module,
  memoryLimit: memoryBytes,
  maxStackSize: STACK_BYTES,
  timezoneOffset: 0,
  // Also check CPU time: the thread may have been waiting for a core.
  interruptHandler: () => performance.now() - started > softMs && cpuNow() - startedCpu > softMs,
  // No clock, no randomness and no output.
  wasi: (given: Memory) => {
    memory = given
    return { clock_time_get: () => 0, random_get: () => 0, fd_write: () => 8 }
  },
})
const nothing = vm.undefined
const run = vm.evalCode(
  `(${prepareRealm})(${JSON.stringify(options)}, (${makeFunctions})())`,
  'realm',
  EvalFlags.STRICT,
)
reserveHeap()
const image = takeImage()
const compiled = new Map<string, Uint8Array>()

// Warm up, so that the first batch does not include lazy compilation by V8.
perform({ source: 'value + 1', input: '{"values":[1]}', softMs: 1000 })
parentPort?.on('message', (jobs: readonly Job[]) => {
  for (const job of jobs) {
    const answer = perform(job)
    parentPort?.postMessage(answer)
    if (answer.spent) return
  }
})
parentPort?.postMessage({ cpuMs: cpuNow() })

function perform(job: Job): Answer {
  started = performance.now()
  startedCpu = cpuNow()
  softMs = job.softMs
  let answer: Answer
  try {
    const call = vm.evalBytecode(bytecodeOf(job.source))
    answer = { output: vm.callFunction(run, nothing, call, vm.newString(job.input)).toString() }
  } catch (error) {
    answer = failureOf(error)
  }
  softMs = Number.POSITIVE_INFINITY
  const isFine = image.restore()
  return { ...answer, cpuMs: cpuNow(), ...(isFine ? {} : { spent: true }) }
}

/** Compiles exactly the text that the checker parsed. */
function bytecodeOf(source: string): Uint8Array {
  const known = compiled.get(source)
  if (known) return known
  const bytecode = vm.compile(programOf(source), 'expression')
  if (compiled.size >= MAX_COMPILED) compiled.clear()
  compiled.set(source, bytecode)
  return bytecode
}

function failureOf(error: unknown): Answer {
  if (!(error instanceof JSException)) {
    const message = error instanceof Error ? error.message : String(error)
    const isSyntax = message.startsWith('Compilation error')
    return { failure: 'broken', message: message.slice(0, 300), ...(isSyntax ? {} : { spent: true }) }
  }
  const { message } = error
  error.dispose()
  if (message === 'interrupted') return { failure: 'time', message }
  return { failure: message.includes('memory') ? 'memory' : 'broken', message: message.slice(0, 300) }
}

/** Grows the heap to its limit at the start, because memory that grows later cannot be reset. */
function reserveHeap(): void {
  const { exports } = vm as unknown as {
    readonly exports: { wasm_malloc(size: number): number; wasm_free(at: number): void }
  }
  exports.wasm_free(exports.wasm_malloc(memoryBytes))
}

/** Copies all used memory: the low part whole, and above the free space only pages that are not empty. */
function takeImage(): { restore(): boolean } {
  const whole = new Uint8Array(memoryNow().buffer)
  const size = whole.length
  const pages = Array.from({ length: size / PAGE }, (_, page) => page * PAGE)
  const empty = Buffer.alloc(PAGE)
  const used = pages.filter(at => empty.compare(whole, at, at + PAGE) !== 0)
  const gap = used.findIndex((at, index) => (used[index + 1] ?? 0) - at > memoryBytes / 2)
  const low = whole.slice(0, (used[gap] ?? size - PAGE) + PAGE)
  const high = used.slice(gap + 1).map(at => ({ at, bytes: whole.slice(at, at + PAGE) }))
  return {
    restore() {
      const now = new Uint8Array(memoryNow().buffer)
      now.set(low)
      for (const { at, bytes } of high) now.set(bytes, at)
      return now.length === size
    },
  }
}

function memoryNow(): Memory {
  if (!memory) throw new Error('QuickJS has no memory')
  return memory
}

function cpuNow(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}
