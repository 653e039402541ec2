// Compares a copy with its source, record by record: every object without its revision, and every time of last use.

import { createHash } from 'node:crypto'
import { describeKey, type Records, revisionOf, type StoredRecord } from './records.ts'

export type Comparison = {
  /** Passes records on and remembers them. */
  remember(records: Records): AsyncGenerator<StoredRecord>
  /** Throws if these records are not the remembered ones. Their order does not matter. */
  check(records: Records): Promise<void>
}

/** A record is missing, new or different. */
export class DifferenceError extends Error {}

export function openComparison(): Comparison {
  const remembered = new Map<string, string>()
  return {
    async *remember(records) {
      for await (const record of records) {
        const found = digestOf(record)
        if (found) remembered.set(found.name, found.digest)
        yield record
      }
    },
    async check(records) {
      let count = 0
      for await (const record of records) {
        const found = digestOf(record)
        if (!found) continue
        count++
        const expected = remembered.get(found.name)
        if (expected === undefined) throw new DifferenceError(`${found.name} is not in the source`)
        if (expected !== found.digest) throw new DifferenceError(`${found.name} differs from the source`)
      }
      if (count !== remembered.size)
        throw new DifferenceError(`the source has ${remembered.size} records, the copy has ${count}`)
    },
  }
}

function digestOf([fields, bytes = new Uint8Array()]: StoredRecord) {
  if (fields[0] === 'time') return { name: `the last use of ${fields[1]}`, digest: String(fields[2]) }
  if (fields[0] !== 'object') return undefined
  const [, id, bucket, namespace, name, , gap] = fields
  const hash = createHash('sha256').update(`${gap} `).update(bytes.subarray(0, gap))
  const digest = hash.update(bytes.subarray(gap + String(revisionOf(id)).length)).digest('base64')
  return { name: describeKey({ bucket, namespace, name }), digest }
}
