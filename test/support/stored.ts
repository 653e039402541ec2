// Changes a stored object in the database file, with a correct checksum.

import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type LogRow, sumOfRow } from '../../src/storage/sqlite/schema.ts'

/** Changes the newest object of that name, in a bucket with that prefix. */
export function changeStored(
  directory: string,
  { bucket, name }: { readonly bucket: string; readonly name: string },
  change: (text: string) => string,
): void {
  const database = new DatabaseSync(join(directory, 'platform.db'))
  try {
    const find = 'SELECT * FROM log WHERE name = ? AND bucket LIKE ? ORDER BY id DESC LIMIT 1'
    const row = database.prepare(find).get(name, `${bucket}.%`) as unknown as LogRow
    const text = Buffer.from(change(Buffer.from(row.text ?? []).toString()))
    database.prepare('UPDATE log SET text = ?, sum = ? WHERE id = ?').run(text, sumOfRow({ ...row, text }), row.id)
  } finally {
    database.close()
  }
}
