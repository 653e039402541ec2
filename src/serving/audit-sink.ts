// A bounded queue for log lines: writes them to a destination in order and in batches, and retries while the destination fails.

import type { Writable } from 'node:stream'

export interface Sink {
  /** Queues a line. Never throws. False: the queue is full, and the line is lost and counted. */
  write(line: string): boolean
  /** Why lines cannot be written at the moment; undefined: they can. */
  readonly failure: string | undefined
  /** Resolves when every queued line is written or lost. */
  flush(): Promise<void>
  /** Whether every line queued so far was written; false as soon as a write fails. */
  settled(): Promise<boolean>
  /** Writes the remaining lines, with retries for a limited time, and accepts no new ones. */
  close(): Promise<void>
}

/** The target of the bytes. Both functions may throw; they are then called again with the same bytes. */
export interface Destination {
  /** Writes some of the batch from `done` on, and returns the offset up to which it is written. A batch consists of whole lines. */
  put(batch: Buffer, done: number): Promise<number>
  close(): Promise<void>
}

export type SinkOptions = {
  readonly destination: Destination
  /** Maximum bytes in the queue. Further lines are lost. */
  readonly queueBytes: number
  readonly batchBytes: number
  /** Called for lines that are lost. */
  readonly lost: (lines: number) => void
  /** Called once when a failure begins. */
  readonly failed: (error: unknown) => void
  /** Milliseconds to collect lines before a write, unless a caller waits for them. */
  readonly gatherFor?: number
  /** Milliseconds between retries, and the maximum time that `close` waits. */
  readonly retryAfter?: number
  readonly closeWithin?: number
}

export function openSink(options: SinkOptions): Sink {
  const {
    destination,
    queueBytes,
    batchBytes,
    lost,
    failed,
    gatherFor = 0,
    retryAfter = 500,
    closeWithin = 2000,
  } = options
  const queue = openQueue()
  let batch: { readonly bytes: Buffer; readonly lines: number; done: number } | undefined
  let problem: string | undefined
  let overflowing = false
  let pumping: Promise<void> | undefined
  let closing = false
  let givenUp = false
  let wake = () => {}
  let enough = () => {}
  let awaited = 0
  /** Counts of all queued and all written lines, and the callers that wait for a count to be reached. */
  let taken = 0
  let out = 0
  let waiting: { readonly until: number; readonly notify: (isOut: boolean) => void }[] = []
  const notify = (isOut: boolean, upTo: number) => {
    const notified = waiting.filter(one => one.until <= upTo)
    waiting = waiting.filter(one => one.until > upTo)
    for (const one of notified) one.notify(isOut)
  }

  const attempt = async (): Promise<void> => {
    batch ??= { ...queue.take(batchBytes), done: 0 }
    try {
      batch.done = await destination.put(batch.bytes, batch.done)
      problem = undefined
      if (batch.done < batch.bytes.length) return
      out += batch.lines
      batch = undefined
      notify(true, out)
    } catch (error) {
      if (problem === undefined) failed(error)
      problem = (error as Error).message
      notify(false, Number.POSITIVE_INFINITY)
      await new Promise<void>(resolve => {
        const timer = setTimeout(resolve, retryAfter)
        wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
  }
  /** Lines that arrive at about the same time are written together, because a write to a file costs more than many lines. */
  const gather = () =>
    new Promise<void>(resolve => {
      if (gatherFor === 0 || closing || awaited || waiting.length || queue.bytes >= batchBytes)
        return void setImmediate(resolve)
      const timer = setTimeout(resolve, gatherFor)
      enough = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  const pump = async (): Promise<void> => {
    await gather()
    while ((batch || queue.lines) && !givenUp) {
      await attempt()
      if (gatherFor > 0 && queue.lines && problem === undefined) await gather()
    }
    pumping = undefined
  }
  return {
    write(line) {
      if (closing || queue.bytes + line.length > queueBytes) {
        overflowing = !closing
        lost(1)
        return false
      }
      overflowing = false
      taken++
      queue.add(line)
      pumping ??= pump()
      if (queue.bytes >= batchBytes) enough()
      return true
    },
    get failure() {
      if (overflowing && queue.bytes > queueBytes / 2)
        return problem ?? 'events arrive faster than the audit log can be written'
      return problem
    },
    async flush() {
      awaited++
      enough()
      await pumping
      awaited--
    },
    async settled() {
      if (out === taken) return problem === undefined
      if (problem !== undefined || closing) return false
      return new Promise(resolve => {
        waiting.push({ until: taken, notify: resolve })
        enough()
      })
    },
    async close() {
      closing = true
      wake()
      enough()
      let timer: NodeJS.Timeout | undefined
      // A destination that never responds must not delay the shutdown.
      const late = new Promise<void>(resolve => {
        timer = setTimeout(resolve, closeWithin)
      })
      await Promise.race([pumping, late])
      clearTimeout(timer)
      givenUp = true
      wake()
      notify(false, Number.POSITIVE_INFINITY)
      const left = queue.lines + (batch?.lines ?? 0)
      if (left) lost(left)
      await destination.close().catch(() => {})
    },
  }
}

/** Lines in order. Counts characters instead of bytes, because the bound limits memory. */
function openQueue() {
  let waiting: string[] = []
  let first = 0
  let bytes = 0
  return {
    get lines() {
      return waiting.length - first
    },
    get bytes() {
      return bytes
    },
    add(line: string): void {
      waiting.push(line)
      bytes += line.length
    },
    /** Takes lines from the front, up to this many bytes, but at least one. */
    take(most: number): { readonly bytes: Buffer; readonly lines: number } {
      const from = first
      let size = 0
      do {
        bytes -= (waiting[first] as string).length
        size += Buffer.byteLength(waiting[first] as string) + 1
        first++
      } while (first < waiting.length && size + Buffer.byteLength(waiting[first] as string) < most)
      const taken = waiting.slice(from, first)
      if (first === waiting.length || first > 4096) {
        waiting = waiting.slice(first)
        first = 0
      }
      return { bytes: Buffer.from(`${taken.join('\n')}\n`), lines: taken.length }
    },
  }
}

/** A stream such as stdout as a destination. */
export function streamDestination(stream: Writable): Destination {
  // The callback receives failures. Without a listener they would end the process.
  const ignore = () => {}
  stream.on('error', ignore)
  return {
    put: (batch, done) =>
      new Promise((resolve, reject) => {
        // A failed stream never calls back.
        if (!stream.writable) return reject(stream.errored ?? new Error('the stream is closed'))
        stream.write(batch.subarray(done), error => (error ? reject(error) : resolve(batch.length)))
      }),
    close: async () => void stream.removeListener('error', ignore),
  }
}
