// Worker thread that searches the audit log, so that reading and parsing it never delays other requests.

import { parentPort, workerData } from 'node:worker_threads'
import { type Scan, type Scanned, scan } from './audit-scan.ts'

export type SearchData = { readonly file: string }
export type SearchJob = { readonly id: number; readonly search: Scan }
export type SearchAnswer = { readonly id: number; readonly scanned: Scanned }

const { file } = workerData as SearchData

parentPort?.on('message', ({ id, search }: SearchJob) => {
  parentPort?.postMessage({ id, scanned: scanned(search) } satisfies SearchAnswer)
})

function scanned(search: Scan): Scanned {
  try {
    return scan(file, search)
  } catch (error) {
    return { unreadable: (error as Error).message }
  }
}
