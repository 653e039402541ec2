// Creates the database of a data directory from records, for `restore` and `storage migrate`.

import { closeSync, existsSync, linkSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Comparison, openComparison } from '../storage/comparison.ts'
import type { Records, Summary } from '../storage/records.ts'
import { createDatabase, incompleteFile, readDatabase } from '../storage/sqlite/copy.ts'
import { verifyFile } from '../storage/verify.ts'
import { backupFiles } from './data-flags.ts'

export type FillOptions = {
  readonly directory: string
  readonly records: Records
  /** The distance between the revision of the records and the first one of the new store. */
  readonly skip: number
  readonly now: () => number
  /** Called before the store is complete. If it rejects, the store is removed. */
  readonly check?: (copied: Comparison) => Promise<void>
}

/** Runs with the data lock. Removes everything it created if it fails. */
export async function fillDirectory({ directory, records, skip, now, check }: FillOptions): Promise<Summary> {
  const database = join(directory, 'platform.db')
  const file = incompleteFile(database)
  const created = [file, `${file}-journal`]
  try {
    const comparison = openComparison()
    const summary = await createDatabase({ file, records: comparison.remember(records), skip })
    const { damages } = verifyFile(file)
    if (damages.length) throw new Error(`verification of the new database failed: ${damages[0]}`)
    await comparison.check(readDatabase({ file, now }))
    await check?.(comparison)
    for (const name of backupFiles) {
      const bytes = summary.files[name]
      if (bytes) createFile(join(directory, name), bytes, created)
    }
    // link fails if another process created a store in the meantime.
    linkSync(file, database)
    created.push(database)
    rmSync(file)
    return summary
  } catch (error) {
    for (const one of created) rmSync(one, { force: true })
    throw error
  }
}

/** Creates keys with mode 0600, other files according to the umask. */
function createFile(path: string, bytes: Uint8Array, created: string[]): void {
  if (existsSync(path))
    throw new Error(
      `another process created ${path} during the restore: stop that process, then retry with an empty directory`,
    )
  const handle = openSync(path, 'wx', path.endsWith('.key') ? 0o600 : 0o666)
  created.push(path)
  try {
    writeFileSync(handle, bytes, { flush: true })
  } finally {
    closeSync(handle)
  }
}
