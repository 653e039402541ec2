// One thread of the sandbox and its hard limit: whoever does not answer in time is ended, whatever it is doing. Used by sandbox-pool.ts.

import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Answer, Job, WorkerData } from './sandbox-worker.ts'

export type TimedJob = Job & { readonly hardMs: number }

export type SandboxThread = {
  /** Jobs one after the other, each with its own limit; answers in order. Fewer answers than jobs: the thread is spent. */
  perform(jobs: readonly TimedJob[]): Promise<readonly Answer[]>
  close(): Promise<void>
}

const ENDED: Answer = { failure: 'broken', message: 'the thread ended', spent: true }
const LATE: Answer = { failure: 'time', message: 'ended from outside', spent: true }

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
  let settle: ((answer: Answer) => void) | undefined
  const come: Answer[] = []
  let isGone = false
  const take = (answer: Answer) => {
    if (settle) settle(answer)
    else come.push(answer)
    settle = undefined
  }
  const lose = () => {
    isGone = true
    take(ENDED)
  }
  await new Promise<void>((resolve, reject) => {
    worker.once('message', () => resolve())
    worker.once('error', reject)
    worker.once('exit', code => reject(new Error(`the sandbox did not start: exit ${code}`)))
  })
  worker.on('message', take)
  worker.on('error', lose)
  worker.on('exit', lose)
  worker.unref()

  async function end(): Promise<void> {
    isGone = true
    await worker.terminate()
  }

  function next(hardMs: number): Promise<Answer> {
    const ready = come.shift()
    if (ready) return Promise.resolve(ready)
    return new Promise(resolve => {
      let isLate = false
      // An answer may lie in the queue while this thread was busy: it is read first.
      const timer = setTimeout(() => setImmediate(() => setImmediate(late)), hardMs)
      const late = () => {
        if (settle === undefined || isLate) return
        isLate = true
        settle = undefined
        void end().then(() => resolve(LATE))
      }
      settle = answer => {
        clearTimeout(timer)
        if (!isLate) resolve(answer)
        isLate = true
      }
    })
  }

  return {
    async perform(jobs) {
      if (isGone) return [ENDED]
      worker.ref()
      come.length = 0
      worker.postMessage(jobs)
      const answers: Answer[] = []
      for (const { hardMs } of jobs) {
        const answer = await next(hardMs)
        answers.push(answer)
        if (answer.spent) break
      }
      worker.unref()
      return answers
    },
    close: end,
  }
}
