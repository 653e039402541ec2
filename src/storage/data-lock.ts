// One server a data directory: a lock that the operating system releases when the process ends, however it ends.

import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { codeOf, isDamaged, plainWords } from './sqlite-errors.ts'

const BUSY = 5

/**
 * Node has no flock, but SQLite has: an empty database in an exclusive transaction. Nobody may open `lock.db` by
 * other means in this process, since closing any descriptor of it would release the lock; hence the pid beside it.
 */
export function openDataLock(directory: string): { close(): void } {
  const pidFile = join(directory, 'lock.pid')
  let lock: DatabaseSync | undefined
  try {
    lock = new DatabaseSync(join(directory, 'lock.db'), { timeout: 0 })
    lock.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
    writeFileSync(pidFile, `${process.pid}\n`)
  } catch (error) {
    lock?.close()
    if (isDamaged(error))
      throw new Error(
        `${join(directory, 'lock.db')} is damaged: ${(error as Error).message}. It holds nothing: delete it, while no server uses the directory`,
        { cause: error },
      )
    if ((codeOf(error) & 0xff) !== BUSY) {
      throw new Error(`cannot use the data directory ${directory}: ${plainWords(error)}`, { cause: error })
    }
    throw new Error(`the data directory is in use by another platform server (pid ${pidIn(pidFile)})`, { cause: error })
  }
  const held = lock
  return {
    close() {
      rmSync(pidFile, { force: true })
      held.close()
    },
  }
}

function pidIn(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch {
    return 'unknown'
  }
}
