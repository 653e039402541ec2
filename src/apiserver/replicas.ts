// Shares what all replicas need to be the same: the master key, which is only compared, and the CA of their certificates.

import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { authorityFiles, authorityIn, writeAuthority } from '../serving/authority.ts'
import type { Pair } from '../serving/certificate.ts'
import { openSealer, SealError, type Sealer } from '../storage/encryption.ts'
import type { RecordName, SharedRecords } from '../storage/storage.ts'
import type { KeyRing } from './data-directory.ts'
import type { Settings } from './settings.ts'

export type ReplicaOptions = {
  readonly settings: Pick<Settings, 'https' | 'tlsCert'>
  readonly directory: string
  readonly ring: KeyRing
  readonly now: () => number
}

/** Throws if this replica has another master key than the others. */
export async function shareWithReplicas(records: SharedRecords, options: ReplicaOptions): Promise<void> {
  const { settings, directory, ring, now } = options
  const sealer = openSealer({ keys: ring.keys, random: size => randomBytes(size) })
  await checkMasterKey(records, sealer, ring)
  await renewRecords(records, ring)
  if (settings.https !== 'off' && !settings.tlsCert) await shareAuthority(records, { directory, sealer, now })
}

const contextOf = (name: RecordName) => ({ kind: 'Record', namespace: '', name, uid: '', path: 'value' })

/** Any text will do: only whether it can be decrypted matters. */
const sample = 'platform'

async function checkMasterKey(records: SharedRecords, sealer: Sealer, ring: KeyRing): Promise<void> {
  const name = 'master-key'
  const sealed = Buffer.from(sealer.seal(contextOf(name), sample))
  open(sealer, name, (await records.claim(name, sealed)).toString(), ring)
}

/** After a change of the key ring: the first key seals the records again, so that the old key can be removed. */
export async function renewRecords(records: SharedRecords, ring: KeyRing): Promise<void> {
  const sealer = openSealer({ keys: ring.keys, random: size => randomBytes(size) })
  for (const name of ['master-key', 'serving-ca'] as const) {
    const stored = (await records.read(name))?.toString()
    if (stored === undefined || sealer.isCurrent(stored)) continue
    await records.replace(name, Buffer.from(sealer.seal(contextOf(name), open(sealer, name, stored, ring))))
  }
}

function open(sealer: Sealer, name: RecordName, stored: string, { from }: Pick<KeyRing, 'from'>): string {
  try {
    return sealer.open(contextOf(name), stored).toString()
  } catch (error) {
    if (!(error instanceof SealError)) throw error
    throw new Error(
      `the master key of ${from} is not the one of the other replicas: copy it from them, or set --master-key to the same key ring`,
    )
  }
}

/** The record of the CA. Backups and migrations read and write it, too. */
export const sealAuthority = (sealer: Sealer, { certificate, key }: Pair): Buffer =>
  Buffer.from(sealer.seal(contextOf('serving-ca'), JSON.stringify({ certificate, key })))

export const openAuthority = (sealer: Sealer, record: Buffer, ring: Pick<KeyRing, 'from'>): Pair =>
  JSON.parse(open(sealer, 'serving-ca', record.toString(), ring)) as Pair

/** The CA is in the data directory of every replica, and sealed in etcd. The one in etcd decides. */
async function shareAuthority(
  records: SharedRecords,
  { directory, sealer, now }: { readonly directory: string; readonly sealer: Sealer; readonly now: () => number },
): Promise<void> {
  const name = 'serving-ca'
  let stored = await records.read(name)
  if (!stored) {
    stored = await records.claim(name, sealAuthority(sealer, authorityIn(directory, now())))
  }
  const shared = openAuthority(sealer, stored, { from: 'this replica' })
  const isComplete = authorityFiles(directory).every(file => existsSync(file))
  if (isComplete && authorityIn(directory, now()).certificate === shared.certificate) return
  writeAuthority(directory, shared)
}
