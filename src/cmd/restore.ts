// `platform restore FILE --data DIR`: a data directory from a backup. Nothing that is there already is touched.

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
import { carried, dataFlags, dataPlace } from './data-flags.ts'

/** More commits than anyone makes between a backup and the loss of what it was made of. */
const skip = 1_000_000_000

export const restore = defineCommand({
  words: ['restore'],
  what: 'Make a data directory from a backup.',
  examples: [
    {
      what: 'With the key ring put into the new directory first',
      command: 'platform restore platform.backup --data restored',
    },
    {
      what: 'With the key ring elsewhere',
      command: 'platform restore - --data restored --master-key ring.key < platform.backup',
    },
  ],
  flags: dataFlags,
  positionals: [{ name: 'FILE', what: 'the backup, - for standard input' }],
  run: async ({ flags, words: [file = ''] }, io) => {
    if (file !== '-')
      await access(file, constants.R_OK).catch(error => {
        throw unreadable(file, error)
      })
    const { directory, ring, settings } = await dataPlace(flags, io.env)
    refuseFull(directory)
    if (!settings.masterKey && !existsSync(join(directory, 'master.key')))
      throw new UsageError([
        `the key ring is not in the backup: put it into ${directory} as master.key, or name it with --master-key`,
      ])
    const { keys } = ring()
    openDirectory(directory)
    const lock = openDataLock(directory)
    const { objects, revision } = await fillAlone(directory, file, keys).catch(error => {
      lock.remove()
      throw error
    })
    lock.close()
    io.err(
      `platform: ${objects} objects of revision ${revision} are in ${directory}; the next write is ${revision + skip + 1}\n`,
    )
    io.err(`platform: access keys work as before; ${adviceFor(flags, directory, settings.https !== 'off')}\n`)
    return 0
  },
})

/** What comes next is asked as this was. `isSecure`: a server serves HTTPS, and then writes a kubeconfig that leads there. */
function adviceFor(flags: Given<typeof dataFlags>['flags'], directory: string, isSecure: boolean): string {
  const given = (['config', 'master-key'] as const).map(name => (flags[name] ? ` --${name} ${flags[name]}` : ''))
  const same = `--data ${directory}${given.join('')}`
  return `the administrator's own is not in a backup: put it into ${directory} as admin.key${isSecure ? ',' : ';'}
platform: ${isSecure ? `and the next platform serve ${same} writes admin.kubeconfig; ` : ''}if it is lost, platform admin reset ${same} makes a new one`
}

/** The key ring may be there already: it is not in a backup. */
function refuseFull(directory: string, own: readonly string[] = []): void {
  const mayBe = ['master.key', ...own]
  const there = existsSync(directory) ? readdirSync(directory).filter(name => !mayBe.includes(name)) : []
  if (there.length)
    throw new UsageError([
      `${directory} is not empty (${there.slice(0, 3).join(', ')}${there.length > 3 ? ', …' : ''}); name a new directory with --data, or an empty one`,
    ])
}

/** With the lock held: all of it or nothing. */
async function fillAlone(directory: string, file: string, keys: readonly RingKey[]) {
  refuseFull(directory, ['lock.db', 'lock.pid']) // somebody may have been faster
  const restoring = join(directory, 'platform.db.restoring')
  const made = [restoring, `${restoring}-journal`]
  try {
    const source = file === '-' ? process.stdin : createReadStream(file)
    const restored = await readBackup({ file: restoring, source, keys, skip })
    const { damages } = verifyFile(restoring)
    if (damages.length) throw new Error(`what was written does not read back: ${damages[0]}`)
    for (const name of carried) {
      const bytes = restored.files[name]
      if (bytes) make(join(directory, name), bytes, made)
    }
    // Not over a store that somebody began there meanwhile.
    linkSync(restoring, join(directory, 'platform.db'))
    made.push(join(directory, 'platform.db'))
    rmSync(restoring)
    return restored
  } catch (error) {
    for (const one of made) rmSync(one, { force: true })
    throw new Error(`${file === '-' ? 'the backup' : file}: ${(error as Error).message}`, { cause: error })
  }
}

/** A key is readable by its owner alone; the rest by everybody, as far as the umask lets them. */
function make(path: string, bytes: Uint8Array, made: string[]): void {
  if (existsSync(path)) throw new Error(`${path} is there by now: somebody else has put it there`)
  const handle = openSync(path, 'wx', path.endsWith('.key') ? 0o600 : 0o666)
  made.push(path)
  try {
    writeFileSync(handle, bytes, { flush: true })
  } finally {
    closeSync(handle)
  }
}
