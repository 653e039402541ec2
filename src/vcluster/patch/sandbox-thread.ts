// One thread of the sandbox and its hard limit: whoever does not answer in time is ended, whatever it is doing. Used by sandbox-pool.ts.

import { extname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import type { Answer, Job, WorkerData } from './sandbox-worker.ts'

export type TimedJob = Job & { readonly hardMs: number }

export type SandboxThread = {
  /** Jobs one after the other, each with its own limit; answers in order. Fewer answers than jobs: the thread is spent. */
  perform(jobs: readonly TimedJob[]): Promise<readonly Answer[]>
  close(): Promise<void>
}

const ENDED: Answer = { failure: 'broken', message: 'the thread ended', spent: true }
/** Times the hard limit. */
const STARVED = 20
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
  let cpuMs = 0
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
    worker.once('message', (ready: { readonly cpuMs: number }) => {
      cpuMs = ready.cpuMs
      resolve()
    })
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

  /** Processor time that the job has had. Answered by the system, whatever the thread is doing. */
  async function usedMs(): Promise<number> {
    const { user, system } = await worker.cpuUsage()
    return (user + system) / 1000 - cpuMs
  }

  /** True when the job has had its time. On a machine that gives it none it waits, and not for ever. */
  async function isOver({ softMs, hardMs }: TimedJob, hasAnswer: () => boolean): Promise<boolean> {
    for (let waited = hardMs; waited < hardMs * STARVED; waited += hardMs / 5) {
      // An answer may lie in the queue while this thread was busy: it is read first.
      await new Promise(resolve => setImmediate(() => setImmediate(resolve)))
      if (hasAnswer() || isGone || (await usedMs()) > softMs) break
      await delay(hardMs / 5)
    }
    return !hasAnswer()
  }

  function next(job: TimedJob): Promise<Answer> {
    const ready = come.shift()
    if (ready) return Promise.resolve(ready)
    return new Promise((resolve, reject) => {
      let isAnswered = false
      const judge = async () => {
        if (!(await isOver(job, () => isAnswered))) return
        settle = undefined
        await end()
        resolve(LATE)
      }
      const timer = setTimeout(() => void judge().catch(reject), job.hardMs)
      settle = answer => {
        isAnswered = true
        clearTimeout(timer)
        resolve(answer)
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
      for (const job of jobs) {
        const answer = await next(job)
        cpuMs = answer.cpuMs ?? cpuMs
        answers.push(answer)
        if (answer.spent) break
      }
      worker.unref()
      return answers
    },
    close: end,
  }
}
