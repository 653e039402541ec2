// `platform verify [DIR|FILE]`: checks every record and encrypted value of a data directory, an installation in etcd or a backup.

import { randomBytes } from 'node:crypto'
import { createReadStream, existsSync, statSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { etcdOf } from '../apiserver/etcd-settings.ts'
import { defineCommand, type Io, UsageError } from '../host/command.ts'
import { fileProblem, unreadable } from '../host/fs-errors.ts'
import { kinds } from '../kinds/index.ts'
import { undecryptableIn, undecryptableValues } from '../registry/verify-encryption.ts'
import { checkBackup, checkRecords } from '../storage/check-backup.ts'
import { UnknownKeyError } from '../storage/encrypted-stream.ts'
import { openSealer } from '../storage/encryption.ts'
import { readStored } from '../storage/index.ts'
import type { RingKey } from '../storage/key-ring.ts'
import { unavailableReason } from '../storage/sqlite/errors.ts'
import type { EtcdSettings } from '../storage/storage.ts'
import { UnverifiedError, verifyFile } from '../storage/verify.ts'
import { type DataDirectory, resolveData, storageFlags } from './data-flags.ts'

export const verify = defineCommand({
  words: ['verify'],
  what: 'Check every record, encrypted value and index of a data directory, an installation in etcd or a backup: exit code 1 if something is damaged.',
  examples: [
    { what: 'After a disk problem', command: 'platform verify --data data' },
    {
      what: 'Check a backup with its key ring',
      command: 'platform verify platform.backup --master-key ring.key',
    },
  ],
  flags: storageFlags,
  positionals: [
    { name: 'DIR|FILE', what: 'the data directory, a backup, or - for a backup on standard input', optional: true },
  ],
  run: async ({ flags, words: [given] }, io) => {
    if (given === undefined) return verifyStorage(await resolveData(flags, io.env), io)
    const found = given === '-' ? undefined : look(given)
    if (given !== '-' && !found) throw new UsageError([`${given}: no such file or directory`])
    if (!found?.isDirectory()) return verifyBackup(given, await resolveData(flags, io.env), io)
    if (flags.data !== undefined && resolve(flags.data) !== resolve(given))
      throw new UsageError([`two data directories: ${given} and ${flags.data} (--data); pass only one`])
    return verifyDirectory(await resolveData(flags, io.env, given), io)
  },
})

function verifyStorage(data: DataDirectory, io: Io): Promise<number> {
  const etcd = etcdOf(data.settings)
  return etcd ? verifyEtcd(data, etcd, io) : verifyDirectory(data, io)
}

async function verifyEtcd(data: DataDirectory, etcd: EtcdSettings, io: Io): Promise<number> {
  // Loaded only if it is used, because it has many modules.
  const { openRecords, withEtcd } = await import('./etcd-copy.ts')
  const keys = ringOf(data)
  const { damages, records, revision } = await withEtcd(etcd, async client => {
    const read = await openRecords({ client, etcd, ring: data.ring(), now: io.now })
    return checkRecords(read(), undecryptableIn(kinds, sealerOf(keys)))
  })
  for (const damage of damages) io.out(`${damage}\n`)
  io.err(
    damages.length
      ? `platform: ${counted(damages.length)} in the prefix ${etcd.prefix} of etcd; restore a backup to another prefix with platform restore\n`
      : `platform: ok: ${records} objects of revision ${revision} in the prefix ${etcd.prefix} of etcd, with encrypted values\n`,
  )
  return damages.length ? 1 : 0
}

async function verifyDirectory(data: DataDirectory, io: Io): Promise<number> {
  const file = join(data.directory, 'platform.db')
  if (!look(file)) throw new UsageError([`${data.directory} has no platform.db: it is not a data directory`])
  await headerOf(file)
  const sealer = sealerOf(ringOf(data))
  const { damages, records, revision, otherFormat } = reading(file, () => verifyFile(file))
  if (otherFormat !== undefined && !damages.length) throw unverified(file, `it has ${otherFormat}`)
  // Decrypting damaged records would report the same damage twice.
  const seals = damages.length
    ? []
    : undecryptableValues(
        reading(file, () => readStored(data.directory)),
        kinds,
        sealer,
      )
  for (const damage of [...damages, ...seals]) io.out(`${damage}\n`)
  const count = damages.length + seals.length
  if (damages.length) io.err('platform: encrypted values were not checked, because records are damaged\n')
  io.err(
    count
      ? `platform: ${counted(count)} in ${records} records; create a new directory from a backup with platform restore\n`
      : `platform: ok: ${records} records up to revision ${revision}, with encrypted values and indexes\n`,
  )
  return count ? 1 : 0
}

async function verifyBackup(file: string, data: DataDirectory, io: Io): Promise<number> {
  const named = file === '-' ? 'the backup' : file
  await rejectDatabase(file)
  if (!data.settings.masterKey && !existsSync(join(data.directory, 'master.key')))
    throw new UsageError([
      `the key ring is not in the backup: set --master-key, or --data to its directory (${data.directory} has none)`,
    ])
  const keys = ringOf(data)
  const look = undecryptableIn(kinds, sealerOf(keys))
  const source = file === '-' ? process.stdin : createReadStream(file)
  const { damages, records, revision } = await checkBackup({ source, keys, look }).catch(error => {
    if (error instanceof UnknownKeyError) throw unverified(named, error.message)
    throw 'syscall' in error ? unreadable(named, error) : error
  })
  for (const damage of damages) io.out(`${damage}\n`)
  io.err(
    damages.length
      ? `platform: ${counted(damages.length)} in ${named}: platform restore fails or restores damaged data; create a new backup with platform backup\n`
      : `platform: ${named}: ok: ${records} objects of revision ${revision}, with encrypted values\n`,
  )
  return damages.length ? 1 : 0
}

const unverified = (what: string, why: string) => new UsageError([`${what} was not verified: ${why}`])

/** A file that is locked or unreadable is not damaged. */
function reading<T>(file: string, look: () => T): T {
  try {
    return look()
  } catch (error) {
    const why = error instanceof UnverifiedError ? error.message : unavailableReason((error as Error).cause)
    throw why === undefined ? error : unverified(file, why)
  }
}

function look(path: string) {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch (error) {
    throw new UsageError([fileProblem(path, error)])
  }
}

const counted = (count: number) => `${count} ${count === 1 ? 'problem' : 'problems'}`

const sealerOf = (keys: readonly RingKey[]) => openSealer({ keys, random: size => randomBytes(size) })

/** Throws if the file cannot be read. */
async function headerOf(file: string): Promise<Buffer> {
  const header = Buffer.alloc(16)
  let handle: FileHandle | undefined
  try {
    handle = await open(file)
    await handle.read(header, 0, header.length)
    return header
  } catch (error) {
    throw unreadable(file, error)
  } finally {
    await handle?.close()
  }
}

/** The user probably meant the data directory. Skips pipes, because reading consumes them. */
async function rejectDatabase(file: string): Promise<void> {
  if (file === '-' || !statSync(file).isFile()) return
  const header = await headerOf(file)
  if (header.toString('latin1') === 'SQLite format 3\0')
    throw new UsageError([`${file} is the database of a data directory: use platform verify ${dirname(file)}`])
}

/** A missing key ring is a usage error, not damage. */
function ringOf({ ring }: DataDirectory): readonly RingKey[] {
  try {
    return ring().keys
  } catch (error) {
    throw new UsageError([(error as Error).message])
  }
}
