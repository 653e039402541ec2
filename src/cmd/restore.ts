// `platform restore FILE --data DIR`: creates a data directory from a backup. Never overwrites existing data.

import {
  closeSync,
  createReadStream,
  existsSync,
  linkSync,
  openSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { access, constants } from 'node:fs/promises'
import { join } from 'node:path'
import { openDirectory } from '../apiserver/data-directory.ts'
import { defineCommand, type Given, UsageError } from '../host/command.ts'
import { unreadable } from '../host/fs-errors.ts'
import { readBackup } from '../storage/backup.ts'
import { openDataLock } from '../storage/data-lock.ts'
import type { RingKey } from '../storage/key-ring.ts'
import { verifyFile } from '../storage/verify.ts'
import { backupFiles, dataFlags, resolveData } from './data-flags.ts'

/** Exceeds the number of commits between a backup and the loss of the original, so that no revision is used twice. */
const skip = 1_000_000_000

export const restore = defineCommand({
  words: ['restore'],
  what: 'Create a data directory from a backup.',
  examples: [
    {
      what: 'With the key ring in the new directory',
      command: 'platform restore platform.backup --data restored',
    },
    {
      what: 'With the key ring elsewhere',
      command: 'platform restore - --data restored --master-key ring.key < platform.backup',
    },
  ],
  flags: dataFlags,
  positionals: [{ name: 'FILE', what: 'the backup, or - for standard input' }],
  run: async ({ flags, words: [file = ''] }, io) => {
    if (file !== '-')
      await access(file, constants.R_OK).catch(error => {
        throw unreadable(file, error)
      })
    const { directory, ring, settings } = await resolveData(flags, io.env)
    requireEmpty(directory)
    if (!settings.masterKey && !existsSync(join(directory, 'master.key')))
      throw new UsageError([
        `the key ring is not in the backup: copy it to ${directory}/master.key, or set --master-key`,
      ])
    const { keys } = ring()
    openDirectory(directory)
    const lock = openDataLock(directory)
    const { objects, revision } = await restoreLocked(directory, file, keys).catch(error => {
      lock.remove()
      throw error
    })
    lock.close()
    io.err(
      `platform: restored ${objects} objects of revision ${revision} to ${directory}; the next revision is ${revision + skip + 1}\n`,
    )
    io.err(`platform: access keys are still valid; ${adviceFor(flags, directory, settings.https !== 'off')}\n`)
    return 0
  },
})

/** Repeats the flags of this command. With HTTPS, the next start also writes a kubeconfig. */
function adviceFor(flags: Given<typeof dataFlags>['flags'], directory: string, isSecure: boolean): string {
  const given = (['config', 'master-key'] as const).map(name => (flags[name] ? ` --${name} ${flags[name]}` : ''))
  const same = `--data ${directory}${given.join('')}`
  return `the administrator key is not in the backup: copy it to ${directory}/admin.key
platform: ${isSecure ? `the next platform serve ${same} then writes admin.kubeconfig; ` : ''}to create a new key: platform admin reset ${same}`
}

/** The key ring may already exist, because it is not in the backup. */
function requireEmpty(directory: string, own: readonly string[] = []): void {
  const allowed = ['master.key', ...own]
  const existing = existsSync(directory) ? readdirSync(directory).filter(name => !allowed.includes(name)) : []
  if (existing.length)
    throw new UsageError([
      `${directory} is not empty (${existing.slice(0, 3).join(', ')}${existing.length > 3 ? ', …' : ''}); set --data to a new or empty directory`,
    ])
}

/** Runs with the data lock. Removes everything it created if it fails. */
async function restoreLocked(directory: string, file: string, keys: readonly RingKey[]) {
  requireEmpty(directory, ['lock.db', 'lock.pid']) // another process may have been faster
  const restoring = join(directory, 'platform.db.restoring')
  const created = [restoring, `${restoring}-journal`]
  try {
    const source = file === '-' ? process.stdin : createReadStream(file)
    const restored = await readBackup({ file: restoring, source, keys, skip })
    const { damages } = verifyFile(restoring)
    if (damages.length) throw new Error(`verification of the restored database failed: ${damages[0]}`)
    for (const name of backupFiles) {
      const bytes = restored.files[name]
      if (bytes) createFile(join(directory, name), bytes, created)
    }
    // link fails if another process created a store in the meantime.
    linkSync(restoring, join(directory, 'platform.db'))
    created.push(join(directory, 'platform.db'))
    rmSync(restoring)
    return restored
  } catch (error) {
    for (const one of created) rmSync(one, { force: true })
    throw new Error(`${file === '-' ? 'the backup' : file}: ${(error as Error).message}`, { cause: error })
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
