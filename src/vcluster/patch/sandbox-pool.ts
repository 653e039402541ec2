// As many threads as there are allowed, started when they are needed, replaced when they are spent. Used by sandbox.ts.

import type { SandboxThread, TimedJob } from './sandbox-thread.ts'
import type { Answer } from './sandbox-worker.ts'

export type Pool = {
  /** All threads, before anybody asks. Rejects where one cannot be had. */
  start(): Promise<void>
  /** In the order of asking. */
  perform(job: TimedJob): Promise<Answer>
  close(): Promise<void>
}

type Asked = {
  readonly job: TimedJob
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: Error) => void
}

/** Waking a thread costs more than a small job does: what waits goes together, and is still limited one by one. */
const MOST_TOGETHER = 8

export function openPool(most: number, open: () => Promise<SandboxThread>): Pool {
  const idle: SandboxThread[] = []
  const asked: Asked[] = []
  const busy = new Set<Promise<void>>()
  let isClosed = false

  function serveAll(): void {
    while (asked.length && busy.size < most) {
      const share = Math.ceil(asked.length / (most - busy.size))
      const work = serve(asked.splice(0, Math.min(share, MOST_TOGETHER))).finally(() => {
        busy.delete(work)
        serveAll()
      })
      busy.add(work)
    }
  }

  async function serve(group: readonly Asked[]): Promise<void> {
    try {
      const thread = idle.pop() ?? (await open())
      const answers = await thread.perform(group.map(({ job }) => job))
      for (const [index, answer] of answers.entries()) group[index]?.resolve(answer)
      // Behind one that was ended nobody was heard: they go first now.
      asked.unshift(...group.slice(answers.length))
      if (answers.at(-1)?.spent) await replace(thread)
      else idle.push(thread)
    } catch (error) {
      for (const { reject } of group) reject(error as Error)
    }
  }

  /** Before its turn is over, so that who comes next does not wait for a start. */
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
      await Promise.all(Array.from({ length: most - busy.size - idle.length }, add))
    },
    perform: job =>
      new Promise((resolve, reject) => {
        if (isClosed) return reject(new Error('the sandbox is closed'))
        asked.push({ job, resolve, reject })
        // Once all have asked who are about to.
        queueMicrotask(serveAll)
      }),
    async close() {
      isClosed = true
      while (busy.size) await Promise.all(busy)
      await Promise.all(idle.splice(0).map(thread => thread.close()))
    },
  }
}
