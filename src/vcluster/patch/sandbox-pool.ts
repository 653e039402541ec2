// Pool of sandbox threads, started on demand and replaced when they can no longer be used.

import type { SandboxThread, TimedJob } from './sandbox-thread.ts'
import type { Answer } from './sandbox-worker.ts'

export type Pool = {
  /** Starts all threads. Rejects if one cannot start. */
  start(): Promise<void>
  /** Jobs run in the order of the calls. */
  perform(job: TimedJob): Promise<Answer>
  close(): Promise<void>
}

type QueuedJob = {
  readonly job: TimedJob
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: Error) => void
}

/** Waking a thread costs more than a small job, so waiting jobs are sent together. Each keeps its own limits. */
const MAX_GROUP = 8

export function openPool(size: number, open: () => Promise<SandboxThread>): Pool {
  const idle: SandboxThread[] = []
  const queue: QueuedJob[] = []
  const busy = new Set<Promise<void>>()
  let isClosed = false

  function serveAll(): void {
    while (queue.length && busy.size < size) {
      const share = Math.ceil(queue.length / (size - busy.size))
      const work = serve(queue.splice(0, Math.min(share, MAX_GROUP))).finally(() => {
        busy.delete(work)
        serveAll()
      })
      busy.add(work)
    }
  }

  async function serve(group: readonly QueuedJob[]): Promise<void> {
    try {
      const thread = idle.pop() ?? (await open())
      const answers = await thread.perform(group.map(({ job }) => job))
      for (const [index, answer] of answers.entries()) group[index]?.resolve(answer)
      // Jobs after a terminated one did not run: they go to the front of the queue.
      queue.unshift(...group.slice(answers.length))
      if (answers.at(-1)?.spent) await replace(thread)
      else idle.push(thread)
    } catch (error) {
      for (const { reject } of group) reject(error as Error)
    }
  }

  /** Starts the replacement before the slot is free, so that the next job does not wait for it. */
  async function replace(thread: SandboxThread): Promise<void> {
    await thread.close()
    if (!isClosed) await add()
  }

  async function add(): Promise<void> {
    const thread = await open()
    if (isClosed) await thread.close()
    else idle.push(thread)
  }

  return {
    async start() {
      await Promise.all(Array.from({ length: size - busy.size - idle.length }, add))
    },
    perform: job =>
      new Promise((resolve, reject) => {
        if (isClosed) return reject(new Error('the sandbox is closed'))
        queue.push({ job, resolve, reject })
        // Wait for other calls of the same tick, to group them.
        queueMicrotask(serveAll)
      }),
    async close() {
      isClosed = true
      while (busy.size) await Promise.all(busy)
      await Promise.all(idle.splice(0).map(thread => thread.close()))
    },
  }
}
