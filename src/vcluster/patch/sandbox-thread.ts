// One sandbox thread with a hard time limit: it is terminated if it does not respond in time.

import { extname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import type { Answer, Job, WorkerData } from './sandbox-worker.ts'

export type TimedJob = Job & { readonly hardMs: number }

export type SandboxThread = {
  /** Runs jobs in order, each with its own limit. Fewer answers than jobs mean that the thread is no longer usable. */
  perform(jobs: readonly TimedJob[]): Promise<readonly Answer[]>
  close(): Promise<void>
}

const ENDED: Answer = { failure: 'broken', message: 'the thread ended', spent: true }
/** Multiple of the hard limit for a thread that gets no CPU time. */
const STARVED_FACTOR = 20
const LATE: Answer = { failure: 'time', message: 'terminated', spent: true }

export async function openSandboxThread(data: WorkerData): Promise<SandboxThread> {
  // Use the extension of this file: the published package contains .js files.
  const worker = new Worker(new URL(`./sandbox-worker${extname(import.meta.url)}`, import.meta.url), {
    workerData: data,
    name: 'sandbox',
    env: {},
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 4, stackSizeMb: 4 },
  })
  let settle: ((answer: Answer) => void) | undefined
  const received: Answer[] = []
  let isGone = false
  let cpuMs = 0
  const receive = (answer: Answer) => {
    if (settle) settle(answer)
    else received.push(answer)
    settle = undefined
  }
  const onExit = () => {
    isGone = true
    receive(ENDED)
  }
  await new Promise<void>((resolve, reject) => {
    worker.once('message', (ready: { readonly cpuMs: number }) => {
      cpuMs = ready.cpuMs
      resolve()
    })
    worker.once('error', reject)
    worker.once('exit', code => reject(new Error(`cannot start the sandbox: exit code ${code}`)))
  })
  worker.on('message', receive)
  worker.on('error', onExit)
  worker.on('exit', onExit)
  worker.unref()

  async function end(): Promise<void> {
    isGone = true
    await worker.terminate()
  }

  /** CPU time of the job. The operating system reports it even if the thread is busy. */
  async function usedMs(): Promise<number> {
    const { user, system } = await worker.cpuUsage()
    return (user + system) / 1000 - cpuMs
  }

  /** Whether the job has used its time. Waits longer on a busy machine, up to a limit. */
  async function isOver({ softMs, hardMs }: TimedJob, hasAnswer: () => boolean): Promise<boolean> {
    for (let waited = hardMs; waited < hardMs * STARVED_FACTOR; waited += hardMs / 5) {
      // Read pending messages first: this thread may have been busy.
      await new Promise(resolve => setImmediate(() => setImmediate(resolve)))
      if (hasAnswer() || isGone || (await usedMs()) > softMs) break
      await delay(hardMs / 5)
    }
    return !hasAnswer()
  }

  function next(job: TimedJob): Promise<Answer> {
    const ready = received.shift()
    if (ready) return Promise.resolve(ready)
    return new Promise((resolve, reject) => {
      let isAnswered = false
      const endIfOver = async () => {
        if (!(await isOver(job, () => isAnswered))) return
        settle = undefined
        await end()
        resolve(LATE)
      }
      const timer = setTimeout(() => void endIfOver().catch(reject), job.hardMs)
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
      received.length = 0
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
