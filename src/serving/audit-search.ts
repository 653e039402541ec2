// Searches the audit logs of all replicas, its own in a worker thread, and limits the number of searches.

import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { type AuditFeed, type AuditReader, auditUnreadable } from '../api/audit-query.ts'
import { tooManyRequests } from '../api/errors.ts'
import { type AuditSource, pageOf, type ScanLog } from './audit-pages.ts'
import type { Scanned } from './audit-scan.ts'
import type { SearchAnswer, SearchData, SearchJob } from './audit-search-worker.ts'
import { openInflightLimits } from './inflight-limits.ts'

/** Searches that run or wait: of all users together, and of one user. */
const [maxSearches, maxOfUser] = [32, 4]

const fix = 'set audit.log to a file, such as audit.log'

export type AuditReaderOptions = {
  /** The setting audit.log. */
  readonly target: string
  /** Its path, if it is a file. */
  readonly file: string
  readonly feed: AuditFeed
  /** Resolves once all current events are in the file, or cannot be written. */
  readonly settled: () => Promise<unknown>
  /** The id of this replica; default: there are no others. */
  readonly id?: string | undefined
  /** The logs of the other replicas. */
  readonly others?: (() => readonly AuditSource[]) | undefined
}

/** `scan`: reads a part of the log of this replica alone. */
export type LocalAuditReader = AuditReader & { readonly scan: ScanLog }

export function openAuditReader(options: AuditReaderOptions): LocalAuditReader {
  const { target, file, feed, settled, id = '', others = () => [] } = options
  const problem =
    target === 'off'
      ? `audit events cannot be read, because audit.log is off; ${fix}`
      : target === '-'
        ? `audit events cannot be read, because audit.log is standard output; ${fix}`
        : undefined
  const thread = openThread(file)
  const scan: ScanLog = async search => {
    if (problem !== undefined) return { unreadable: problem }
    if (!search.from) await settled()
    return thread(search)
  }
  const limits = openInflightLimits({
    max: { read: maxSearches, write: 0, watch: 0 },
    share: maxOfUser / maxSearches,
    rate: 0,
    burst: 0,
    now: Date.now,
  })
  return {
    feed,
    problem,
    scan,
    async search(search, user) {
      if (problem !== undefined) throw auditUnreadable(problem)
      const leave = limits.enter(user, 'read')
      if (!leave) throw tooManyRequests()
      try {
        return await pageOf(search, [{ id, name: id, scan }, ...others()])
      } finally {
        leave()
      }
    },
  }
}

type Waiting = { readonly resolve: (scanned: Scanned) => void; readonly reject: (error: Error) => void }

/** The thread starts with the first search, and again after a crash. It does not keep the process running. */
function openThread(file: string): ScanLog {
  const waiting = new Map<number, Waiting>()
  let worker: Worker | undefined
  let lastId = 0
  const start = (): Worker => {
    const program = new URL(`./audit-search-worker${extname(import.meta.url)}`, import.meta.url)
    const workerData: SearchData = { file }
    const made = new Worker(program, { workerData, name: 'audit-search' })
    made.unref()
    made.on('message', ({ id, scanned }: SearchAnswer) => {
      waiting.get(id)?.resolve(scanned)
      waiting.delete(id)
      if (waiting.size === 0) made.unref()
    })
    const lost = (error: Error) => {
      if (worker === made) worker = undefined
      for (const one of waiting.values()) one.reject(error)
      waiting.clear()
    }
    made.on('error', lost)
    made.on('exit', code => lost(new Error(`the audit search thread ended with ${code}`)))
    return made
  }
  return search =>
    new Promise((resolve, reject) => {
      worker ??= start()
      worker.ref()
      const id = ++lastId
      waiting.set(id, { resolve, reject })
      worker.postMessage({ id, search } satisfies SearchJob)
    })
}
