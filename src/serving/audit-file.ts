// A log file for audit lines: rotated by size, with old files deleted by number and age. Reopens the file after an external rotation.

import { constants, type FileHandle, open, readdir, rename, stat, unlink } from 'node:fs/promises'
import { dirname, extname, join } from 'node:path'
import { rotatedAt } from './audit-files.ts'
import type { Destination } from './audit-sink.ts'

export type FileOptions = {
  readonly file: string
  /** Maximum size of a file. A single longer line may exceed it. */
  readonly maxBytes: number
  /** Number of rotated files to keep; 0: all. */
  readonly maxFiles: number
  /** Milliseconds to keep rotated files; 0: forever. */
  readonly maxAge: number
  readonly now: () => number
  /** Whether each write is followed by an fdatasync. */
  readonly sync?: boolean
  /** Called when a rotation or the removal of an old file fails; lines are still written. */
  readonly failed: (what: string, error: unknown) => void
}

const pruneEvery = 3600_000
const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT

/** Throws if the file cannot be opened, so that the server fails at the start. */
export async function openFileDestination(options: FileOptions): Promise<Destination> {
  const { file, maxBytes, now, failed } = options
  let handle: FileHandle | undefined
  let identity = ''
  let pruned = Number.NEGATIVE_INFINITY

  const reopen = async (): Promise<number> => {
    await handle?.close().catch(() => {})
    handle = undefined
    handle = await open(file, flags, 0o600)
    const found = await handle.stat()
    // An existing file may be readable by others. Devices keep their mode.
    if (found.isFile() && (found.mode & 0o777) !== 0o600)
      await handle.chmod(0o600).catch(error => failed('restricting the permissions of the audit log', error))
    identity = `${found.dev}/${found.ino}`
    return found.size
  }
  /** The current size of the file. Reopens it if another file now has its name; `moved` reports that. */
  const look = async (): Promise<{ size: number; moved: boolean }> => {
    const there = handle && (await stat(file).catch(missing))
    if (there && `${there.dev}/${there.ino}` === identity) return { size: there.size, moved: false }
    return { size: await reopen(), moved: true }
  }
  const rotate = async (): Promise<void> => {
    try {
      await rename(file, await freeName(file, now()))
      pruned = Number.NEGATIVE_INFINITY
    } catch (error) {
      return failed('rotating the audit log', error)
    }
    await reopen()
  }
  const prune = async (): Promise<void> => {
    if (now() - pruned < pruneEvery) return
    pruned = now()
    await removeOld(options).catch(error => failed('removing old audit logs', error))
  }

  await reopen()
  return {
    async put(batch, done) {
      const { size, moved } = await look()
      // A line must not be split between two files, so the whole line is written again.
      const from = moved && done > 0 ? batch.lastIndexOf(10, done - 1) + 1 : done
      if (from === 0 && size > 0 && size + batch.length > maxBytes) await rotate()
      await prune()
      const { bytesWritten } = await (handle as FileHandle).write(batch, from)
      if (options.sync) await handle?.datasync()
      return from + bytesWritten
    },
    async close() {
      await handle?.close()
      handle = undefined
    },
  }
}

function missing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}

/** `audit.log` → `audit-2026-01-31T12-00-00.000.log`, as in kube-apiserver. Existing files are not overwritten. */
async function freeName(file: string, now: number): Promise<string> {
  for (let at = now; ; at++) {
    const extension = extname(file)
    const time = new Date(at).toISOString().slice(0, 23).replaceAll(':', '-')
    const name = `${file.slice(0, file.length - extension.length)}-${time}${extension}`
    if (!(await stat(name).catch(missing))) return name
  }
}

async function removeOld({ file, maxFiles, maxAge, now }: FileOptions): Promise<void> {
  const directory = dirname(file)
  const old = (await readdir(directory))
    .map(name => ({ name, time: rotatedAt(file, name) }))
    .filter(({ time }) => !Number.isNaN(time))
    .sort((one, other) => other.time - one.time)
  const gone = old.filter(
    ({ time }, index) => (maxFiles > 0 && index >= maxFiles) || (maxAge > 0 && now() - time > maxAge),
  )
  for (const { name } of gone) await unlink(join(directory, name)).catch(missing)
}
