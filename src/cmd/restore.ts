// `platform restore FILE`: creates a data directory, or an installation in etcd, from a backup. Never overwrites existing data.

import { createReadStream, existsSync, readdirSync } from 'node:fs'
import { access, constants } from 'node:fs/promises'
import { join } from 'node:path'
import { openDirectory } from '../apiserver/data-directory.ts'
import { etcdOf } from '../apiserver/etcd-settings.ts'
import { defineCommand, type Given, type Io, UsageError } from '../host/command.ts'
import { unreadable } from '../host/fs-errors.ts'
import { readBackup } from '../storage/backup.ts'
import { openDataLock } from '../storage/data-lock.ts'
import type { RingKey } from '../storage/key-ring.ts'
import type { EtcdSettings } from '../storage/storage.ts'
import { resolveData, storageFlags } from './data-flags.ts'
import { fillDirectory } from './fill-directory.ts'

/** Exceeds the number of commits between a backup and the loss of the original, so that no revision is used twice. */
const skip = 1_000_000_000

export const restore = defineCommand({
  words: ['restore'],
  what: 'Create a data directory, or an installation in etcd, from a backup.',
  examples: [
    {
      what: 'With the key ring in the new directory',
      command: 'platform restore platform.backup --data restored',
    },
    {
      what: 'With the key ring elsewhere',
      command: 'platform restore - --data restored --master-key ring.key < platform.backup',
    },
    {
      what: 'To an empty prefix of etcd',
      command: 'platform restore platform.backup --data data --storage etcd --etcd-endpoints https://10.0.0.1:2379',
    },
  ],
  flags: storageFlags,
  positionals: [{ name: 'FILE', what: 'the backup, or - for standard input' }],
  run: async ({ flags, words: [file = ''] }, io) => {
    if (file !== '-')
      await access(file, constants.R_OK).catch(error => {
        throw unreadable(file, error)
      })
    const { directory, ring, settings } = await resolveData(flags, io.env)
    const etcd = etcdOf(settings)
    if (!etcd) requireEmpty(directory)
    if (!settings.masterKey && !existsSync(join(directory, 'master.key')))
      throw new UsageError([
        `the key ring is not in the backup: copy it to ${directory}/master.key, or set --master-key`,
      ])
    const { keys } = ring()
    if (etcd) return restoreToEtcd({ file, etcd, keys, directory }, io)
    openDirectory(directory)
    const lock = openDataLock(directory)
    const { objects, revision } = await restoreLocked(directory, file, keys, io.now).catch(error => {
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

async function restoreToEtcd(
  options: {
    readonly file: string
    readonly etcd: EtcdSettings
    readonly keys: readonly RingKey[]
    readonly directory: string
  },
  io: Io,
): Promise<number> {
  const { file, etcd, keys, directory } = options
  // Loaded only if it is used, because it has many modules.
  const { fillEtcd, listingLarge, withProgress } = await import('./etcd-copy.ts')
  const records = withProgress(readBackup(sourceOf(file), keys), io)
  const { objects, revision, offset } = await listingLarge(
    io,
    'restore the backup to SQLite, make them smaller, and use platform storage migrate',
    () => fillEtcd({ etcd, ring: { keys }, records, skip, now: io.now }),
  ).catch(named(file))
  io.err(
    `platform: restored ${objects} objects of revision ${revision} to the prefix ${etcd.prefix} of etcd; resourceVersions are revisions of etcd plus ${offset}\n`,
  )
  io.err(
    `platform: access keys are still valid; the administrator key is not in the backup: ${directory}/admin.key must be the one from before\n`,
  )
  return 0
}

/** Repeats the flags of this command. With HTTPS, the next start also writes a kubeconfig. */
function adviceFor(flags: Given<typeof storageFlags>['flags'], directory: string, isSecure: boolean): string {
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

/** Runs with the data lock. */
async function restoreLocked(directory: string, file: string, keys: readonly RingKey[], now: () => number) {
  requireEmpty(directory, ['lock.db', 'lock.pid']) // another process may have been faster
  return fillDirectory({ directory, records: readBackup(sourceOf(file), keys), skip, now }).catch(named(file))
}

const sourceOf = (file: string) => (file === '-' ? process.stdin : createReadStream(file))

const named = (file: string) => (error: Error) => {
  throw new Error(`${file === '-' ? 'the backup' : file}: ${error.message}`, { cause: error })
}
