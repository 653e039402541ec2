// A queue before a place that takes lines: in order, in batches, bounded, and patient while the place fails. audit-file.ts and audit.ts call it.

import type { Writable } from 'node:stream'

export interface Sink {
  /** Takes a line at once and never throws. False: the queue is full, and the line is lost and counted. */
  write(line: string): boolean
  /** Why lines do not get out at the moment; undefined: they do. */
  readonly failure: string | undefined
  /** Resolves when everything that was taken is out, or given up. */
  flush(): Promise<void>
  /** Whether everything that was taken up to now got out; false as soon as a try fails. */
  settled(): Promise<boolean>
  /** Writes what is left, for a while even if it fails, and takes nothing more. */
  close(): Promise<void>
}

/** The target of the bytes. Both functions may throw; they are then called again with the same bytes. */
export interface Destination {
  /** Writes some of the batch beginning at `done`, and answers up to where it is out now. A batch is whole lines. */
  put(batch: Buffer, done: number): Promise<number>
  close(): Promise<void>
}

export type SinkOptions = {
  readonly destination: Destination
  /** Lines beyond this many bytes are not taken. */
  readonly queueBytes: number
  readonly batchBytes: number
  /** Called for lines that are lost. */
  readonly lost: (lines: number) => void
  /** Called once when a failure begins. */
  readonly failed: (error: unknown) => void
  /** Milliseconds for which lines gather before they are written, unless somebody waits for them. */
  readonly gatherFor?: number
  /** Milliseconds between tries, and those a close waits at most. */
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
  /** Lines taken and lines out, ever; and who waits for how many to be out. */
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
      // Not even a place that never answers holds up the end.
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

/** Lines in order. Their length in characters stands for bytes: the bound is one of memory. */
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
    /** Lines from the front, up to so many bytes, at least one. */
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

/** A stream such as stdout as a place for lines. */
export function streamDestination(stream: Writable): Destination {
  // Failures come to the callback; without a listener they would end the process.
  const ignore = () => {}
  stream.on('error', ignore)
  return {
    put: (batch, done) =>
      new Promise((resolve, reject) => {
        // A stream that broke once answers no more.
        if (!stream.writable) return reject(stream.errored ?? new Error('the stream is closed'))
        stream.write(batch.subarray(done), error => (error ? reject(error) : resolve(batch.length)))
      }),
    close: async () => void stream.removeListener('error', ignore),
  }
}
