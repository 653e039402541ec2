// `platform verify [DIR|FILE]`: looks at every record and seal of a data directory or of a backup, and names what is wrong.

import { randomBytes } from 'node:crypto'
import { createReadStream, existsSync, statSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { defineCommand, type Io, UsageError } from '../host/command.ts'
import { fileProblem, unreadable } from '../host/fs-errors.ts'
import { kinds } from '../kinds/index.ts'
import { brokenSealOf, brokenSeals } from '../registry/verify-encryption.ts'
import { checkBackup } from '../storage/check-backup.ts'
import { UnknownKeyError } from '../storage/encrypted-stream.ts'
import { openSealer } from '../storage/encryption.ts'
import { readStored } from '../storage/index.ts'
import type { RingKey } from '../storage/key-ring.ts'
import { whyUnseen } from '../storage/sqlite/errors.ts'
import { UnseenError, verifyFile } from '../storage/verify.ts'
import { type DataPlace, dataFlags, dataPlace } from './data-flags.ts'

export const verify = defineCommand({
  words: ['verify'],
  what: 'Check every record, seal and index of a data directory, or of a backup; 1: something is damaged.',
  examples: [
    { what: 'After a disk was not to be trusted', command: 'platform verify --data data' },
    {
      what: 'Before a backup is trusted, with the key ring that sealed it',
      command: 'platform verify platform.backup --master-key ring.key',
    },
  ],
  flags: dataFlags,
  positionals: [
    { name: 'DIR|FILE', what: 'the data directory, or a backup, - for one on standard input', optional: true },
  ],
  run: async ({ flags, words: [given] }, io) => {
    if (given === undefined) return verifyDirectory(await dataPlace(flags, io.env), io)
    const found = given === '-' ? undefined : look(given)
    if (given !== '-' && !found) throw new UsageError([`${given}: there is no such directory or file`])
    if (!found?.isDirectory()) return verifyBackup(given, await dataPlace(flags, io.env), io)
    if (flags.data !== undefined && resolve(flags.data) !== resolve(given))
      throw new UsageError([`two data directories: ${given} and ${flags.data} (--data); name one`])
    return verifyDirectory(await dataPlace(flags, io.env, given), io)
  },
})

async function verifyDirectory(place: DataPlace, io: Io): Promise<number> {
  const file = join(place.directory, 'platform.db')
  if (!look(file)) throw new UsageError([`${place.directory} has no platform.db: it is no data directory`])
  await beginningOf(file)
  const sealer = sealerOf(ringOf(place))
  const { damages, records, revision, otherFormat } = seen(file, () => verifyFile(file))
  if (otherFormat !== undefined && !damages.length) throw unverified(file, `it has ${otherFormat}`)
  // What cannot be read as it was written need not be opened.
  const seals = damages.length
    ? []
    : brokenSeals(
        seen(file, () => readStored(place.directory)),
        kinds,
        sealer,
      )
  for (const damage of [...damages, ...seals]) io.out(`${damage}\n`)
  const count = damages.length + seals.length
  if (damages.length) io.err('platform: seals are looked at once everything else is whole\n')
  io.err(
    count
      ? `platform: ${counted(count)} in ${records} records; platform restore makes a new directory from a backup\n`
      : `platform: ${records} records up to revision ${revision}, with their seals and indexes, are as they were written\n`,
  )
  return count ? 1 : 0
}

async function verifyBackup(file: string, place: DataPlace, io: Io): Promise<number> {
  const named = file === '-' ? 'the backup' : file
  await refuseDatabase(file)
  if (!place.settings.masterKey && !existsSync(join(place.directory, 'master.key')))
    throw new UsageError([
      `the key ring is not in the backup: name it with --master-key, or its directory with --data (${place.directory} has none)`,
    ])
  const keys = ringOf(place)
  const look = brokenSealOf(kinds, sealerOf(keys))
  const source = file === '-' ? process.stdin : createReadStream(file)
  const { damages, records, revision } = await checkBackup({ source, keys, look }).catch(error => {
    if (error instanceof UnknownKeyError) throw unverified(named, error.message)
    throw 'syscall' in error ? unreadable(named, error) : error
  })
  for (const damage of damages) io.out(`${damage}\n`)
  io.err(
    damages.length
      ? `platform: ${counted(damages.length)} in ${named}: platform restore refuses it, or what it makes is damaged; platform backup makes a new one\n`
      : `platform: ${named}: ${records} objects of revision ${revision}, with their seals, are as they were stored\n`,
  )
  return damages.length ? 1 : 0
}

const unverified = (what: string, why: string) => new UsageError([`${what} was not verified: ${why}`])

/** What cannot be looked at just now, or by this user, is not damaged for that. */
function seen<T>(file: string, look: () => T): T {
  try {
    return look()
  } catch (error) {
    const why = error instanceof UnseenError ? error.message : whyUnseen((error as Error).cause)
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

const counted = (count: number) => `${count} ${count === 1 ? 'damage' : 'damages'}`

const sealerOf = (keys: readonly RingKey[]) => openSealer({ keys, random: size => randomBytes(size) })

/** Throws where it cannot be read. */
async function beginningOf(file: string): Promise<Buffer> {
  const begin = Buffer.alloc(16)
  let handle: FileHandle | undefined
  try {
    handle = await open(file)
    await handle.read(begin, 0, begin.length)
    return begin
  } catch (error) {
    throw unreadable(file, error)
  } finally {
    await handle?.close()
  }
}

/** Whoever names the store's own file means its directory. A pipe is not looked into: what is read of it is gone. */
async function refuseDatabase(file: string): Promise<void> {
  if (file === '-' || !statSync(file).isFile()) return
  const begin = await beginningOf(file)
  if (begin.toString('latin1') === 'SQLite format 3\0')
    throw new UsageError([`${file} is the store of a data directory: platform verify ${dirname(file)} looks at it`])
}

/** Without it seals cannot be looked at: that is no damage, and nothing was verified. */
function ringOf({ ring }: DataPlace): readonly RingKey[] {
  try {
    return ring().keys
  } catch (error) {
    throw new UsageError([(error as Error).message])
  }
}
