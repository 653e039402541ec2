// Verifies the records of a backup, without restoring it, or of an installation in etcd. `platform verify` calls it.

import { recordsIn } from './backup.ts'
import { openStream } from './encrypted-stream.ts'
import type { RingKey } from './key-ring.ts'
import { labelsOf } from './labels.ts'
import { type Fields, type Records, revisionOf } from './records.ts'
import type { Entry } from './store.ts'
import { describeRow, MAX_DAMAGES, problemOf, type Verified } from './verify.ts'

export type CheckOptions = {
  readonly source: AsyncIterable<Uint8Array>
  readonly keys: readonly RingKey[]
  /** Other problems of an intact object, as text. */
  readonly look: (entry: Entry) => readonly string[]
}

/** Throws UnknownKeyError if the ring cannot decrypt the backup. Nothing is checked then. */
export async function checkBackup({ source, keys, look }: CheckOptions): Promise<Verified> {
  const damages: string[] = []
  const report = (damage: string) => {
    if (damages.length < MAX_DAMAGES) damages.push(damage)
  }
  const check = openCheck(report, look)
  let pieces = 0
  for await (const piece of openStream(source, keys, report)) {
    pieces++
    try {
      for (const [fields, bytes] of recordsIn(piece)) check.record(fields, bytes)
    } catch (error) {
      report(`cannot read a record in decrypted chunk ${pieces}: ${(error as Error).message}`)
    }
  }
  // The error about an unreadable chunk covers the records in it.
  if (damages.length === 0 && !check.isWhole()) report('the backup is incomplete: records are missing')
  return { records: check.objects(), revision: check.revision(), damages }
}

/** Checks the records of an installation in etcd in the same way. */
export async function checkRecords(records: Records, look: CheckOptions['look']): Promise<Verified> {
  const damages: string[] = []
  const check = openCheck(damage => {
    if (damages.length < MAX_DAMAGES) damages.push(damage)
  }, look)
  for await (const [fields, bytes = new Uint8Array()] of records) check.record(fields, Buffer.from(bytes))
  return { records: check.objects(), revision: check.revision(), damages }
}

function openCheck(report: (damage: string) => void, look: CheckOptions['look']) {
  const seen = new Set<string>()
  let revision: number | undefined
  let objects = 0
  let end: number | undefined

  function object(
    [, id, bucket, namespace, name, , gap]: Extract<Fields, readonly ['object', ...unknown[]]>,
    text: Buffer,
  ) {
    objects++
    const at = revisionOf(id)
    const where = describeRow({ id, bucket, namespace, name })
    const key = JSON.stringify([bucket, namespace, name])
    if (seen.has(key)) report(`${where}: duplicate object`)
    seen.add(key)
    if (revision !== undefined && at > revision) report(`${where}: newer than the backup`)
    const problem =
      gap === 0 ? 'a deletion, which a backup must not contain' : problemOf({ gap, text, namespace, name }, at)
    if (problem !== undefined) return report(`${where}: ${problem}`)
    for (const found of look({ key: { bucket, namespace, name }, revision: at, text, labels: labelsOf(text) }))
      report(found)
  }

  return {
    record(fields: Fields, bytes: Buffer): void {
      if (fields[0] === 'begin') revision = fields[1]
      else if (fields[0] === 'object') object(fields, bytes)
      else if (fields[0] === 'end') end = fields[1]
      else if (fields[0] !== 'file' && fields[0] !== 'time') report('the backup contains a record of an unknown kind')
    },
    isWhole: () => revision !== undefined && end === objects,
    objects: () => objects,
    revision: () => revision ?? 0,
  }
}
