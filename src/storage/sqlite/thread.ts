// The main thread's side of the storage thread: starts it, sends requests and returns replies.

import { getCompileCacheDir } from 'node:module'
import { dirname, extname } from 'node:path'
import { type Transferable, Worker } from 'node:worker_threads'
import { fromMessage } from './errors.ts'
import type { LogChunk } from './load.ts'
import type { Answer, Ready, Request, WorkerData } from './worker.ts'

/** The thread ended before it replied. Only the file shows whether the request had an effect. */
export class ThreadLostError extends Error {}

export type SqliteThread = Ready & {
  /** Resolves when the request is durable. Rejects with the reason if it had no effect, or with ThreadLostError. */
  call(request: Request, transfer?: readonly Transferable[]): Promise<void>
  /** Reads the whole file. Rejects with what `receive` throws. */
  load(receive: (chunk: LogChunk) => void): Promise<void>
  close(): Promise<void>
}

type Waiting = { readonly resolve: () => void; readonly reject: (error: Error) => void }

export function openSqliteThread(data: WorkerData): Promise<SqliteThread> {
  const worker = startWorker(data)
  const calls = new Map<number, Waiting>()
  let chunks: (chunk: LogChunk) => void = () => {}
  let lastId = 0
  let lost: Error | undefined

  const call: SqliteThread['call'] = (request, transfer = []) =>
    new Promise((resolve, reject) => {
      if (lost !== undefined) return reject(lost)
      const id = ++lastId
      calls.set(id, { resolve, reject })
      worker.postMessage({ id, request }, transfer)
    })

  function settle(answer: Answer): void {
    const waiting = calls.get(answer.id)
    calls.delete(answer.id)
    if (answer.error === undefined) waiting?.resolve()
    else waiting?.reject(fromMessage(answer.error))
  }

  const load: SqliteThread['load'] = async receive => {
    let failure: { readonly error: unknown } | undefined
    chunks = chunk => {
      if (failure) return
      try {
        receive(chunk)
      } catch (error) {
        failure = { error }
      }
    }
    await call({ type: 'load' })
    if (failure) throw failure.error
  }

  function failAll(reason: Error): void {
    lost ??= new ThreadLostError(`the storage thread ended: ${reason.message}`, { cause: reason })
    for (const { reject } of calls.values()) reject(lost)
    calls.clear()
  }

  return new Promise((resolve, reject) => {
    worker.once('message', (ready: Ready) => {
      worker.on('message', (message: Answer | LogChunk) => ('rows' in message ? chunks(message) : settle(message)))
      resolve({ ...ready, call, load, close: () => closeThread(call) })
    })
    // Without the lost message, the store would have less than the file.
    worker.on('messageerror', () => void worker.terminate())
    worker.on('error', (error: Error) => {
      failAll(error)
      reject(error)
    })
    worker.on('exit', code => {
      failAll(new Error(`exit ${code}`))
      reject(lost ?? new Error(`exit ${code}`))
    })
  })
}

function startWorker(workerData: WorkerData): Worker {
  // The file's own ending, because the published sources are compiled.
  const program = new URL(`./worker${extname(import.meta.url)}`, import.meta.url)
  const cache = getCompileCacheDir()
  if (cache === undefined) return new Worker(program, { workerData })
  // A thread does not inherit the compile cache, and without it the thread dominates the start. Node's directory is below the
  // configured one. The worker is started by URL and not by source text, because only then --import modules load first.
  const starter = `import { enableCompileCache } from 'node:module'
    enableCompileCache(${JSON.stringify(dirname(cache))})
    import(${JSON.stringify(program.href)}).catch(error => process.nextTick(() => { throw error }))`
  return new Worker(new URL(`data:text/javascript,${encodeURIComponent(starter)}`), { workerData })
}

async function closeThread(call: SqliteThread['call']): Promise<void> {
  await call({ type: 'close' }).catch((error: unknown) => {
    if (!(error instanceof ThreadLostError)) throw error
  })
}
