// The lock on a data directory, for one server or restore at a time. The operating system releases it when the process ends.

import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { codeOf, describeError, isDamaged } from './sqlite/errors.ts'

const BUSY = 5

export type DataLock = {
  close(): void
  /** Releases the lock and removes its file. */
  remove(): void
}

/**
 * Node has no flock, but SQLite has: an empty database in an exclusive transaction. Nothing else in this process may open `lock.db`,
 * because closing any of its descriptors would release the lock. So the pid is in a separate file.
 */
export function openDataLock(directory: string): DataLock {
  const [file, pidFile] = [join(directory, 'lock.db'), join(directory, 'lock.pid')]
  let lock: DatabaseSync | undefined
  try {
    // A file that was removed between opening and locking locks nothing, because no other process can find it.
    for (let isThere = false; !isThere; ) {
      lock?.close()
      lock = undefined
      const before = numberOf(file)
      lock = new DatabaseSync(file, { timeout: 0 })
      lock.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
      isThere = before !== undefined && numberOf(file) === before
    }
    writeFileSync(pidFile, `${process.pid}\n`)
  } catch (error) {
    lock?.close()
    if (isDamaged(error))
      throw new Error(
        `${file} is damaged: ${(error as Error).message}. It contains no data: delete it while no server uses the directory`,
        { cause: error },
      )
    if ((codeOf(error) & 0xff) !== BUSY) {
      throw new Error(`cannot use the data directory ${directory}: ${describeError(error)}`, { cause: error })
    }
    throw new Error(`the data directory is in use by another platform server or restore (pid ${pidIn(pidFile)})`, {
      cause: error,
    })
  }
  const held = lock
  return {
    close() {
      rmSync(pidFile, { force: true })
      held?.close()
    },
    remove() {
      rmSync(pidFile, { force: true })
      rmSync(file, { force: true }) // removed while the lock is held: the next process creates a new file
      held?.close()
    },
  }
}

const numberOf = (file: string) => statSync(file, { throwIfNoEntry: false })?.ino

function pidIn(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch {
    return 'unknown'
  }
}
