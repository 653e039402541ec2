// Defines a copy of a store as a sequence of records. Backups, restores and migrations read and write it.

import { SLOTS } from './sqlite/table.ts'
import type { Key } from './store.ts'

/** Files in a copy, by name, such as the CA that clients trust. */
export type Files = { readonly [name: string]: Uint8Array }

/**
 * In this order. The id of an object has its revision and its slot in the commit. The bytes of an object are its text, with the
 * revision in the gap.
 */
export type Fields =
  | readonly ['begin', revision: number, time: number]
  | readonly ['file', name: string]
  | readonly [
      'object',
      id: number,
      bucket: string,
      namespace: string,
      name: string,
      previous: number,
      gap: number,
      time: number,
    ]
  | readonly ['time', id: string, time: number]
  | readonly ['end', objects: number]

export type StoredRecord = readonly [Fields, Uint8Array?]
export type Records = Iterable<StoredRecord> | AsyncIterable<StoredRecord>

/** `time`: when the copy was created. */
export type Summary = {
  readonly revision: number
  readonly objects: number
  readonly time: number
  readonly files: Files
}

export const revisionOf = (id: number): number => Math.floor(id / SLOTS)
export const idOf = (revision: number, slot: number): number => revision * SLOTS + slot

export const describeKey = ({ bucket, namespace, name }: Key): string =>
  `${bucket} ${namespace ? `${namespace}/` : ''}${name}`

/** Passes the records on. Throws at the end if some are missing. `done` gets the summary after the last record. */
export async function* summarized(records: Records, done: (summary: Summary) => void): AsyncGenerator<StoredRecord> {
  const files: { [name: string]: Uint8Array } = Object.create(null)
  let begin: { revision: number; time: number } | undefined
  let objects = 0
  let isComplete = false
  for await (const record of records) {
    const [fields, bytes = new Uint8Array()] = record
    if (fields[0] === 'begin') begin = { revision: fields[1], time: fields[2] }
    else if (fields[0] === 'file') files[fields[1]] = bytes
    else if (fields[0] === 'object') objects++
    else if (fields[0] === 'end') isComplete = fields[1] === objects
    yield record
  }
  if (!begin || !isComplete) throw new Error('the backup is incomplete')
  done({ ...begin, objects, files })
}
