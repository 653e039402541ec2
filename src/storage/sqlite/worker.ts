// The storage thread: owns the database file, handles requests in order, and replies to each when it is durable.

import { parentPort, workerData } from 'node:worker_threads'
import { type ErrorMessage, toMessage } from './errors.ts'
import { type LogChunk, readLog } from './load.ts'
import { openTable, type RowBatch, type Text, type Times, UnclearError } from './table.ts'

export type Request =
  | { readonly type: 'append'; readonly batch: RowBatch }
  | { readonly type: 'save'; readonly times: Times }
  | { readonly type: 'replace'; readonly texts: readonly Text[] }
  | { readonly type: 'probe' }
  | { readonly type: 'compact'; readonly floor: number }
  | /** Sends everything in the file, as chunks before the answer. */ { readonly type: 'load' }
  | { readonly type: 'close' }

/** The reply to every request except `close`, which ends the thread. `error`: why the request had no effect. */
export type Answer = { readonly id: number; readonly error?: ErrorMessage }
export type Ready = { readonly revision: number; readonly floor: number }
export type WorkerData = { readonly file: string; readonly settle: boolean }

if (parentPort !== null) serve(parentPort, workerData as WorkerData)

function serve(port: NonNullable<typeof parentPort>, data: WorkerData): void {
  const table = openTable(data)
  /** Compactions run in small steps, after all other requests. */
  const compactions: { id: number; floor: number }[] = []

  function perform(request: Request): void {
    if (request.type === 'append') table.append(request.batch)
    else if (request.type === 'save') table.saveTimes(request.times)
    else if (request.type === 'replace') table.replace(request.texts)
    else if (request.type === 'probe') table.probe()
    else if (request.type === 'load') load()
  }

  /** On this thread, so that the main thread builds its indexes meanwhile. */
  function load(): void {
    for (const chunk of readLog(data.file, true))
      port.postMessage(chunk satisfies LogChunk, [chunk.texts.buffer as ArrayBuffer])
  }

  function close(): void {
    compactions.length = 0
    table.close()
    port.close()
  }

  /** An undecided COMMIT gets no reply: it ends the thread, and the next thread reads the file to find out. */
  function answer(id: number, work: () => void): void {
    try {
      work()
      port.postMessage({ id } satisfies Answer)
    } catch (error) {
      if (error instanceof UnclearError) throw error
      port.postMessage({ id, error: toMessage(error) } satisfies Answer)
    }
  }

  function compactOn(): void {
    const next = compactions[0]
    if (next === undefined) return
    try {
      if (table.floor < next.floor) table.compact(next.floor)
      if (table.floor >= next.floor) {
        compactions.shift()
        port.postMessage({ id: next.id } satisfies Answer)
      }
    } catch (error) {
      if (error instanceof UnclearError) throw error
      compactions.shift()
      port.postMessage({ id: next.id, error: toMessage(error) } satisfies Answer)
    }
    tidy()
    if (compactions.length > 0) setImmediate(compactOn)
  }

  /** Ignores failures: the next commits report them, and until then the write-ahead log only grows. */
  function tidy(): void {
    try {
      table.tidy()
    } catch {}
  }

  port.on('message', ({ id, request }: { id: number; request: Request }) => {
    if (request.type === 'compact') {
      compactions.push({ id, floor: request.floor })
      if (compactions.length === 1) setImmediate(compactOn)
      return
    }
    if (request.type === 'close') return close()
    answer(id, () => perform(request))
    tidy()
  })
  port.postMessage({ revision: table.revision, floor: table.floor } satisfies Ready)
}
