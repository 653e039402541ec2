// `platform storage migrate`: copies everything from SQLite to etcd or back, while nothing runs, and verifies every record.

import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type KeyRing, openDirectory } from '../apiserver/data-directory.ts'
import { etcdOf } from '../apiserver/etcd-settings.ts'
import { defineCommand, type Io, UsageError } from '../host/command.ts'
import { kinds } from '../kinds/index.ts'
import { countByKey } from '../registry/reencrypt.ts'
import { type Comparison, DifferenceError } from '../storage/comparison.ts'
import { openDataLock } from '../storage/data-lock.ts'
import { printId } from '../storage/encryption.ts'
import { requireNoReplicas } from '../storage/etcd/claim.ts'
import { checkSizes } from '../storage/etcd/sizes.ts'
import { readStored } from '../storage/index.ts'
import type { Records, StoredRecord, Summary } from '../storage/records.ts'
import { incompleteFile, readDatabase } from '../storage/sqlite/copy.ts'
import type { EtcdSettings } from '../storage/storage.ts'
import { type DataDirectory, dataFlags, etcdFlags, filesIn, resolveData } from './data-flags.ts'
import { fillEtcd, isConstant, listingLarge, openRecords, withEtcd, withProgress } from './etcd-copy.ts'
import { fillDirectory } from './fill-directory.ts'

const engines = ['sqlite', 'etcd']

export const storageMigrate = defineCommand({
  words: ['storage', 'migrate'],
  what: 'Copy all data from SQLite to etcd, or back, and verify every record. The server and all replicas must be stopped.',
  examples: [
    {
      what: 'From one server to replicas',
      command: 'platform storage migrate --from sqlite --to etcd --data data --etcd-endpoints https://10.0.0.1:2379',
    },
    {
      what: 'Back to one server',
      command: 'platform storage migrate --from etcd --to sqlite --data data --etcd-endpoints https://10.0.0.1:2379',
    },
  ],
  flags: {
    from: { type: 'text', value: 'ENGINE', what: 'The engine to read.', choices: engines, required: true },
    to: {
      type: 'text',
      value: 'ENGINE',
      what: 'The engine to fill. It must be empty.',
      choices: engines,
      required: true,
    },
    ...dataFlags,
    ...etcdFlags,
  },
  run: async ({ flags }, io) => {
    if (flags.from === flags.to) throw new UsageError(['--from and --to must be different'])
    const data = await resolveData({ ...flags, storage: 'etcd' }, io.env)
    const etcd = etcdOf(data.settings)!
    await (flags.to === 'etcd' ? toEtcd(data, etcd, io) : toSqlite(data, etcd, io))
    return 0
  },
})

async function toEtcd({ directory, ring }: DataDirectory, etcd: EtcdSettings, io: Io): Promise<void> {
  const file = join(directory, 'platform.db')
  if (!existsSync(file))
    throw new UsageError([`${directory} has no platform.db: set --data to the directory of a server`])
  const { keys, from } = ring()
  const lock = openDataLock(directory)
  try {
    requireKeys(directory, { keys, from })
    const source = () => readDatabase({ file, files: filesIn(directory), now: io.now })
    const { objects, revision, offset } = await listingLarge(
      io,
      'make them smaller or delete them while a server runs on SQLite, and retry',
      async () => {
        const total = await checkSizes(source(), isConstant)
        return fillEtcd({ etcd, ring: { keys }, records: withProgress(source(), io, total), skip: 0, now: io.now })
      },
    )
    io.err(
      `platform: copied and verified ${objects} objects of revision ${revision} in the prefix ${etcd.prefix} of etcd; resourceVersions are revisions of etcd plus ${offset}\n`,
    )
    io.err(`platform: every replica needs the key ring ${from}; start them with --storage etcd\n`)
    io.err(`platform: ${file} is unchanged. Do not start a server on it again: it would continue with the old data\n`)
  } finally {
    lock.close()
  }
}

/** With another key ring, the replicas could not open the copy of the CA. */
function requireKeys(directory: string, { keys, from }: KeyRing): void {
  for (const [id, count] of countByKey(readStored(directory), kinds))
    if (!keys.some(key => key.id === id))
      throw new Error(`the key ring ${from} does not have the key ${printId(id)} of ${count} values: set --master-key`)
}

async function toSqlite({ directory, ring }: DataDirectory, etcd: EtcdSettings, io: Io): Promise<void> {
  const file = join(directory, 'platform.db')
  if (existsSync(file))
    throw new UsageError([`${directory} already has a platform.db: set --data to a directory without one`])
  const keys = ring()
  openDirectory(directory)
  const lock = openDataLock(directory)
  const { objects, revision } = await copyLocked(directory, etcd, keys, io).catch(error => {
    lock.remove()
    throw error
  })
  lock.close()
  io.err(`platform: copied and verified ${objects} objects of revision ${revision} to ${file}\n`)
  io.err(`platform: the server needs the key ring ${keys.from}; start it without --storage etcd\n`)
  io.err(
    `platform: the keys below ${etcd.prefix} in etcd are unchanged. Do not start replicas there again; delete them with etcdctl del --prefix ${etcd.prefix}/\n`,
  )
}

async function copyLocked(directory: string, etcd: EtcdSettings, ring: KeyRing, io: Io): Promise<Summary> {
  // Left behind by a migration that was interrupted.
  const incomplete = incompleteFile(join(directory, 'platform.db'))
  for (const one of [incomplete, `${incomplete}-journal`]) rmSync(one, { force: true })
  return withEtcd(etcd, async client => {
    const source = await openRecords({ client, etcd, ring, now: io.now })
    await requireNoReplicas(client, etcd.prefix)
    const check = async (copied: Comparison) => {
      await checkUnchanged(copied, source())
      await requireNoReplicas(client, etcd.prefix)
    }
    const records = withProgress(withoutExisting(source(), directory), io)
    return fillDirectory({ directory, records, skip: 0, now: io.now, check })
  })
}

async function checkUnchanged(copied: Comparison, again: Records): Promise<void> {
  await copied.check(again).catch((error: unknown) => {
    if (!(error instanceof DifferenceError)) throw error
    throw new Error('the data in etcd has changed during the migration: stop all replicas, and retry', { cause: error })
  })
}

/** Leaves out the CA if the directory has it, as the directory of a replica does. Throws if it is another one. */
async function* withoutExisting(records: Records, directory: string): AsyncGenerator<StoredRecord> {
  for await (const record of records) {
    const [fields, bytes = new Uint8Array()] = record
    const path = fields[0] === 'file' ? join(directory, fields[1]) : undefined
    if (path === undefined || !existsSync(path)) yield record
    else if (!readFileSync(path).equals(bytes))
      throw new Error(`${path} is not of the CA that the replicas use: move ca.crt and ca.key away, and retry`)
  }
}
