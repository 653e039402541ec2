// As many threads as there are allowed, started when they are needed, replaced when they are spent. Used by sandbox.ts.

import type { SandboxThread } from './sandbox-thread.ts'
import type { Answer } from './sandbox-worker.ts'

export type Pool = {
  /** Waits for a free thread, in the order of asking. */
  use(work: (thread: SandboxThread) => Promise<Answer>): Promise<Answer>
  close(): Promise<void>
}

export function openPool(most: number, open: () => Promise<SandboxThread>): Pool {
  const idle: SandboxThread[] = []
  const asking: (() => void)[] = []
  const busy = new Set<Promise<unknown>>()
  let free = most
  let isClosed = false

  async function turn(): Promise<void> {
    if (free > 0) free--
    else await new Promise<void>(resolve => asking.push(resolve))
  }

  function next(): void {
    const first = asking.shift()
    if (first) first()
    else free++
  }

  /** A spent thread is replaced before its turn is over: who comes next does not wait for a start. */
  async function replace(thread: SandboxThread): Promise<void> {
    try {
      await thread.close()
      if (!isClosed) idle.push(await open())
    } finally {
      next()
    }
  }

  async function perform(work: (thread: SandboxThread) => Promise<Answer>): Promise<Answer> {
    await turn()
    let spent: SandboxThread | undefined
    try {
      if (isClosed) throw new Error('the sandbox is closed')
      const thread = idle.pop() ?? (await open())
      const answer = await work(thread)
      if (answer.spent) spent = thread
      else idle.push(thread)
      return answer
    } finally {
      if (spent) void track(replace(spent).catch(() => {}))
      else next()
    }
  }

  function track<T>(work: Promise<T>): Promise<T> {
    const done = work.finally(() => busy.delete(done))
    busy.add(done)
    return done
  }

  return {
    use: work => track(perform(work)),
    async close() {
      isClosed = true
      while (busy.size) await Promise.allSettled(busy)
      await Promise.all(idle.splice(0).map(thread => thread.close()))
    },
  }
}
