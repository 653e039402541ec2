// File access of the command line: atomic writes, owner-only permissions, locks.

import { access, constants, mkdir, open, readFile, rename, rm, rmdir, writeFile } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { locked } from './file-lock.ts'
import { unreadable, unwritable } from './fs-errors.ts'
import type { Files } from './machine.ts'
import { makeDirectory } from './make-directory.ts'

/** `notify` prints a message while a lock is busy. */
export const openFiles = (env: NodeJS.ProcessEnv, notify: (text: string) => void): Files => ({
  read: path =>
    readFile(path).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined
      // The user did not name this file, so it is not a usage error.
      throw new Error(unreadable(path, error).message, { cause: error })
    }),

  async write(path, data) {
    const temporary = `${path}.${process.pid}.tmp`
    try {
      makeDirectory(dirname(path))
      const handle = await open(temporary, 'w', 0o600)
      try {
        await handle.chmod(0o600)
        await handle.writeFile(data)
        await handle.sync()
      } finally {
        await handle.close()
      }
      await rename(temporary, path)
    } catch (error) {
      await rm(temporary, { force: true }).catch(() => {})
      throw unwritable(path, error)
    }
  },

  async make(path, data, mode = 0o600) {
    try {
      await writeFile(path, data, { flag: 'wx', mode, flush: true })
      return true
    } catch (error) {
      return existing(path, error as NodeJS.ErrnoException)
    }
  },

  async makeDirectory(path) {
    try {
      await mkdir(path, { mode: 0o700 })
      return true
    } catch (error) {
      return existing(path, error as NodeJS.ErrnoException)
    }
  },

  async removeDirectory(path) {
    try {
      await rmdir(path)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'ENOTEMPTY' || code === 'EEXIST') return false
      if (code !== 'ENOENT') throw error
    }
    return true
  },

  remove: path => rm(path, { force: true }),

  removeAll: path => rm(path, { force: true, recursive: true }),

  locked: (path, work, waiting) => locked(path, work, { notify: text => notify(waiting ?? text) }),

  async find(program) {
    for (const directory of (env['PATH'] ?? '').split(delimiter).filter(Boolean)) {
      const file = join(directory, program)
      const isThere = await access(file, constants.X_OK).then(
        () => true,
        () => false,
      )
      if (isThere) return file
    }
    return undefined
  },
})

/** False if the path exists; throws for every other error. */
function existing(path: string, { code, message }: NodeJS.ErrnoException): false {
  if (code === 'EEXIST') return false
  throw new Error(`cannot write ${path}: ${code === 'ENOENT' ? 'the directory does not exist' : message}`)
}
