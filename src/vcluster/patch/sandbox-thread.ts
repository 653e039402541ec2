// One thread of the sandbox and its hard limit: whoever does not answer in time is ended, whatever it is doing. Used by sandbox.ts.

import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Answer, Job, WorkerData } from './sandbox-worker.ts'

export type SandboxThread = {
  /** One job at a time. A thread that answers `spent`, or was ended, takes no more. */
  perform(job: Job, hardMs: number): Promise<Answer>
  close(): Promise<void>
}

const ENDED: Answer = { failure: 'broken', message: 'the thread ended', spent: true }

export async function openSandboxThread(data: WorkerData): Promise<SandboxThread> {
  // The file's own ending, because the published sources are compiled.
  const worker = new Worker(new URL(`./sandbox-worker${extname(import.meta.url)}`, import.meta.url), {
    workerData: data,
    name: 'sandbox',
    env: {},
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 4, stackSizeMb: 4 },
  })
  let waiting: ((answer: Answer) => void) | undefined
  let isGone = false
  const settle = (answer: Answer) => {
    worker.unref()
    waiting?.(answer)
    waiting = undefined
  }
  const lose = () => {
    isGone = true
    settle(ENDED)
  }
  await new Promise<void>((resolve, reject) => {
    worker.once('message', () => resolve())
    worker.once('error', reject)
    worker.once('exit', code => reject(new Error(`the sandbox did not start: exit ${code}`)))
  })
  worker.on('message', settle)
  worker.on('error', lose)
  worker.on('exit', lose)
  worker.unref()

  async function end(): Promise<void> {
    isGone = true
    await worker.terminate()
  }

  return {
    async perform(job, hardMs) {
      if (isGone) return ENDED
      worker.ref()
      const answered = new Promise<Answer>(resolve => {
        waiting = resolve
      })
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<'late'>(resolve => {
        // An answer may lie in the queue while this thread was busy: it is read first.
        timer = setTimeout(() => setImmediate(() => setImmediate(resolve, 'late')), hardMs)
      })
      worker.postMessage(job)
      const first = await Promise.race([answered, late])
      clearTimeout(timer)
      if (first !== 'late') return first
      await end()
      return { failure: 'time', message: 'ended from outside', spent: true }
    },
    close: end,
  }
}
