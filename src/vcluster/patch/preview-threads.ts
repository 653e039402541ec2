// Runs previews in worker threads with limits on time, memory and output, so that they never block the server.

import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { JsonObject } from '../../api/object.ts'
import type { PreviewRequest } from './preview-report.ts'
import type { PreviewAnswer } from './preview-worker.ts'

export type Previews = {
  /** Resolves with the status of the PatchPreview. Rejects only if the server is at fault. */
  run(request: PreviewRequest): Promise<JsonObject>
  close(): Promise<void>
}

export type PreviewLimits = { readonly threads: number; readonly maxMs: number; readonly idleMs: number }

const defaults: PreviewLimits = { threads: 2, maxMs: 10_000, idleMs: 60_000 }

const limited = (reason: string, message: string): JsonObject => ({ problem: { reason, message } })

export function openPreviews(given: Partial<PreviewLimits> = {}): Previews {
  const limits = { ...defaults, ...given }
  const idle: { readonly worker: Worker; readonly timer: NodeJS.Timeout }[] = []
  const waiting: (() => void)[] = []
  let running = 0
  let isClosed = false

  const take = (): Worker => {
    const free = idle.pop()
    if (!free) return startWorker()
    clearTimeout(free.timer)
    return free.worker
  }
  const keep = (worker: Worker) => {
    if (isClosed) return void worker.terminate()
    const timer = setTimeout(() => {
      const at = idle.findIndex(one => one.worker === worker)
      if (at >= 0) idle.splice(at, 1)
      void worker.terminate()
    }, limits.idleMs).unref()
    idle.push({ worker, timer })
  }

  return {
    async run(request) {
      if (running >= limits.threads) await new Promise<void>(resolve => waiting.push(resolve))
      else running++
      try {
        const worker = take()
        const answer = await perform(worker, request, limits.maxMs)
        if ('status' in answer) keep(worker)
        else await worker.terminate()
        if ('broken' in answer) throw new Error(`the preview failed: ${answer.broken}`)
        return 'status' in answer ? answer.status : answer.ended
      } finally {
        // The slot goes to the next in line.
        const next = waiting.shift()
        if (next) next()
        else running--
      }
    },
    async close() {
      isClosed = true
      await Promise.all(
        idle.splice(0).map(({ worker, timer }) => {
          clearTimeout(timer)
          return worker.terminate()
        }),
      )
    },
  }
}

function startWorker(): Worker {
  const worker = new Worker(new URL(`./preview-worker${extname(import.meta.url)}`, import.meta.url), {
    name: 'patch-preview',
    env: {},
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16 },
  })
  worker.unref()
  // An error of an idle thread must not end the process.
  worker.on('error', () => {})
  return worker
}

/** `ended`: the thread cannot be used again. */
type Performed =
  | { readonly status: JsonObject }
  | { readonly ended: JsonObject }
  | { readonly broken: string; readonly ended?: undefined }

function perform(worker: Worker, request: PreviewRequest, maxMs: number): Promise<Performed> {
  return new Promise(resolve => {
    const settle = (performed: Performed) => {
      clearTimeout(timer)
      worker.off('message', onMessage).off('error', onError).off('exit', onExit)
      resolve(performed)
    }
    const onMessage = (answer: PreviewAnswer) => settle(performedOf(answer))
    const onError = (error: Error & { readonly code?: string }) =>
      settle(
        error.code === 'ERR_WORKER_OUT_OF_MEMORY'
          ? { ended: limited('MemoryLimit', 'needed more than 128 MiB of memory') }
          : { broken: error.message },
      )
    const onExit = (code: number) => settle({ broken: `the thread ended with ${code}` })
    const message = `took longer than ${maxMs / 1000} s in all`
    const timer = setTimeout(() => settle({ ended: limited('TimeLimit', message) }), maxMs)
    worker.on('message', onMessage).on('error', onError).on('exit', onExit)
    worker.postMessage(request)
  })
}

function performedOf(answer: PreviewAnswer): Performed {
  if ('output' in answer) return { status: JSON.parse(answer.output) as JsonObject }
  if ('isTooLarge' in answer) return { status: limited('OutputLimit', 'the result is larger than 1 MiB') }
  return { broken: answer.broken }
}
