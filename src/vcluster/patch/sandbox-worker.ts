// The thread that runs foreign code: QuickJS in WebAssembly, set back to the same memory after every batch. Started by sandbox-thread.ts.

import { parentPort, workerData } from 'node:worker_threads'
import { EvalFlags, JSException, QuickJS } from 'quickjs-wasi'
import { programOf } from './program.ts'
import { makeFunctions } from './sandbox-functions.ts'
import { prepareRealm, type RealmOptions } from './sandbox-realm.ts'

export type WorkerData = RealmOptions & { readonly module: object; readonly memoryBytes: number }
export type Job = { readonly source: string; readonly input: string; readonly softMs: number }
/** `failure` is about the whole batch; what single values failed with is in `output`. */
export type Answer = ({ readonly output: string } | Failure) & {
  /** The memory cannot be set back: the thread is to be ended. */
  readonly spent?: boolean
  /** Milliseconds of processor time that the thread has used in its life. */
  readonly cpuMs?: number
}
export type Failure = { readonly failure: 'time' | 'memory' | 'broken'; readonly message: string }

/** As much of WebAssembly.Memory as is needed; the compiler's library for Node has no types for it. */
type Memory = { readonly buffer: ArrayBuffer }

const { module, memoryBytes, ...options } = workerData as WorkerData
const STACK_BYTES = 256 * 1024
const PAGE = 4096
const MOST_COMPILED = 256

let memory: Memory | undefined
let started = 0
let startedCpu = 0
let softMs = Number.POSITIVE_INFINITY

const vm = await QuickJS.create({
  wasm: module,
  memoryLimit: memoryBytes,
  maxStackSize: STACK_BYTES,
  timezoneOffset: 0,
  // Time that others took from the thread is not the program's.
  interruptHandler: () => performance.now() - started > softMs && cpuNow() - startedCpu > softMs,
  // No clock, no randomness, no output: a program has no way to ask for any.
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

// Warm, so that the first batch does not pay for what V8 compiles late.
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

/** Compiles the very text that the checker has parsed. */
function bytecodeOf(source: string): Uint8Array {
  const known = compiled.get(source)
  if (known) return known
  const made = vm.compile(programOf(source), 'expression')
  if (compiled.size >= MOST_COMPILED) compiled.clear()
  compiled.set(source, made)
  return made
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

/** The heap takes all its room at the start: were it to grow later, the memory could not be set back. */
function reserveHeap(): void {
  const { exports } = vm as unknown as {
    readonly exports: { wasm_malloc(size: number): number; wasm_free(at: number): void }
  }
  exports.wasm_free(exports.wasm_malloc(memoryBytes))
}

/** All memory that is in use now. Behind it is free room, of which only the pages that are not empty count. */
function takeImage(): { restore(): boolean } {
  const whole = new Uint8Array(memoryNow().buffer)
  const size = whole.length
  const pages = Array.from({ length: size / PAGE }, (_, page) => page * PAGE)
  const empty = Buffer.alloc(PAGE)
  const used = pages.filter(at => empty.compare(whole, at, at + PAGE) !== 0)
  const room = used.findIndex((at, index) => (used[index + 1] ?? 0) - at > memoryBytes / 2)
  const low = whole.slice(0, (used[room] ?? size - PAGE) + PAGE)
  const high = used.slice(room + 1).map(at => ({ at, bytes: whole.slice(at, at + PAGE) }))
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
