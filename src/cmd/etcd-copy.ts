// Copies an installation out of etcd and into it, for `backup`, `restore` and `storage migrate`.

import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import type { KeyRing } from '../apiserver/data-directory.ts'
import { openAuthority, sealAuthority } from '../apiserver/replicas.ts'
import type { Io } from '../host/command.ts'
import { SecretVersion } from '../kinds/secret-version.ts'
import { openSealer } from '../storage/encryption.ts'
import { offsetOf } from '../storage/etcd/claim.ts'
import { type EtcdClient, openEtcdClient } from '../storage/etcd/client.ts'
import { readInstallation } from '../storage/etcd/export.ts'
import { createInstallation, type Imported } from '../storage/etcd/import.ts'
import { patient } from '../storage/etcd/patience.ts'
import { TooLargeError } from '../storage/etcd/sizes.ts'
import type { Files, Records, StoredRecord } from '../storage/records.ts'
import type { EtcdSettings } from '../storage/storage.ts'
import { backupFiles } from './data-flags.ts'

export async function withEtcd<T>(etcd: EtcdSettings, work: (client: EtcdClient) => Promise<T>): Promise<T> {
  const client = patient(openEtcdClient(etcd))
  try {
    return await work(client)
  } finally {
    client.close()
  }
}

/** Versions of secrets are not changed, only created and deleted. */
export const isConstant = (bucket: string) => bucket === SecretVersion.id

const sealerOf = ({ keys }: Pick<KeyRing, 'keys'>) => openSealer({ keys, random: size => randomBytes(size) })

/** The records of the installation, at one revision per call. */
export async function openRecords(options: {
  readonly client: EtcdClient
  readonly etcd: EtcdSettings
  readonly ring: KeyRing
  readonly now: () => number
}): Promise<() => Records> {
  const { client, etcd, ring, now } = options
  const offset = await offsetOf({ ...etcd, client })
  const openFiles = (record: Buffer): Files => {
    const { certificate, key } = openAuthority(sealerOf(ring), record, ring)
    const [certificateName, keyName] = backupFiles
    return { [certificateName]: Buffer.from(certificate), [keyName]: Buffer.from(key) }
  }
  return () => readInstallation({ client, prefix: etcd.prefix, offset, openFiles, now })
}

export async function fillEtcd(options: {
  readonly etcd: EtcdSettings
  readonly ring: Pick<KeyRing, 'keys'>
  readonly records: Records
  /** The minimum distance between the revision of the records and the first one of the installation. */
  readonly skip: number
  readonly now: () => number
}): Promise<Imported> {
  const { etcd, ring, ...rest } = options
  const sealFiles = (files: Files) => {
    const [certificate, key] = backupFiles.map(name => files[name])
    if (!certificate || !key) return undefined
    return sealAuthority(sealerOf(ring), { certificate: textOf(certificate), key: textOf(key) })
  }
  return withEtcd(etcd, client => createInstallation({ ...etcd, ...rest, client, sealFiles, isConstant }))
}

const textOf = (bytes: Uint8Array) => Buffer.from(bytes).toString()

/** Lists the objects that are too large. */
export async function listingLarge<T>(io: Pick<Io, 'out'>, advice: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof TooLargeError)) throw error
    for (const one of error.objects) io.out(`${one}\n`)
    throw new Error(`${error.message}: ${advice}. Nothing was stored`, { cause: error })
  }
}

const progressEvery = 10_000

/** Prints the progress at a terminal. */
export async function* withProgress(
  records: Records,
  io: Pick<Io, 'err' | 'isTerminal'>,
  total?: number,
): AsyncGenerator<StoredRecord> {
  let objects = 0
  for await (const record of records) {
    if (record[0][0] === 'object' && ++objects % progressEvery === 0 && io.isTerminal)
      io.err(`platform: ${objects}${total === undefined ? '' : ` of ${total}`} objects\n`)
    yield record
  }
}
