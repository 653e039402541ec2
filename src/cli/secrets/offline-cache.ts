// Encrypted cache of the last secret values, for when the service is unreachable.

import { createCipheriv, createDecipheriv, createHash, scryptSync } from 'node:crypto'
import type { Io } from '../../host/command.ts'
import { allCopies, copiesDirectory } from '../paths.ts'
import type { SecretValues } from './secret-values.ts'

type Owner = { readonly server: string; readonly key: string }
/** Identifies a copy: by server, key, secrets and namespace. */
export type CopyId = Owner & { readonly secrets: readonly string[]; readonly scope: string }

const digest = (...parts: readonly string[]) => createHash('sha256').update(JSON.stringify(parts)).digest('hex')
/** The hash does not reveal the key, which has too much entropy to guess. */
const ownerOf = ({ server, key }: Owner) => digest('copies of', server, key)
const textOf = (of: CopyId) => JSON.stringify([ownerOf(of), of.server, of.scope, of.secrets])
/** Everything that a key keeps on this machine. */
export const ownerDirectory = (io: Io, owner: Owner) => copiesDirectory(io.env, ownerOf(owner))
const fileOf = (io: Io, of: CopyId) => `${ownerDirectory(io, of)}/${digest(textOf(of))}`

/** The encryption key, from the keychain or a passphrase. Without either there is no cache: a key file next to it would protect nothing. */
async function readCacheKey(io: Io, salt: Uint8Array): Promise<Buffer | undefined> {
  const { PLATFORM_PASSPHRASE: passphrase } = io.env
  if (passphrase) return scryptSync(passphrase, salt, 32)
  const known = await (await io.keychain())?.get('last-known')
  return known ? Buffer.from(known, 'base64') : undefined
}

/** Creates a key if there is none. Only for writing, because a new key makes existing copies unreadable. */
async function ensureCacheKey(io: Io, salt: Uint8Array): Promise<Buffer | undefined> {
  const known = await readCacheKey(io, salt)
  if (known) return known
  const keychain = await io.keychain()
  const created = Buffer.from(io.random(32))
  const isStored = await keychain?.set('last-known', created.toString('base64')).then(
    () => true,
    () => false,
  )
  return isStored ? created : undefined
}

type Pairs = readonly (readonly [string, string])[]
/** Copies of earlier releases have no files. */
type Stored = { readonly time: number; readonly entries: Pairs; readonly files?: readonly [string, string | Pairs][] }

const encoded = (values: ReadonlyMap<string, Buffer>): Pairs =>
  [...values].map(([name, value]) => [name, value.toString('base64')])
const decoded = (pairs: Pairs) => new Map(pairs.map(([name, value]) => [name, Buffer.from(value, 'base64')]))

/** Warns instead of failing: the program can run without a copy. */
export async function writeCopy(io: Io, of: CopyId, { values, files }: Omit<Copy, 'time'>): Promise<void> {
  try {
    const [salt, nonce] = [Buffer.from(io.random(16)), Buffer.from(io.random(12))]
    const key = await ensureCacheKey(io, salt)
    if (!key) return
    const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(textOf(of)))
    const entries = encoded(values)
    const inFiles = [...files].map(([name, found]) => [
      name,
      Buffer.isBuffer(found) ? found.toString('base64') : encoded(found),
    ])
    const sealed = Buffer.concat([
      cipher.update(JSON.stringify({ time: io.now(), entries, files: inFiles })),
      cipher.final(),
    ])
    await io.files.write(fileOf(io, of), Buffer.concat([salt, nonce, cipher.getAuthTag(), sealed]))
    await removeLegacyCopies(io)
  } catch (error) {
    io.err(`platform: warning: cannot cache the secrets for offline use: ${(error as Error).message}\n`)
  }
}

export type Copy = SecretValues & { readonly time: number }

/** Returns undefined if there is no readable copy, and prints the cause. */
export async function readCopy(io: Io, of: CopyId): Promise<Copy | undefined> {
  const none = (why: string) => {
    io.err(`platform: no cached copy of ${of.secrets.join(', ')}${why}\n`)
    return undefined
  }
  if (!io.env['PLATFORM_PASSPHRASE'] && !(await io.keychain()))
    return none(': caching requires a keychain or PLATFORM_PASSPHRASE')
  const bytes = Buffer.from((await io.files.read(fileOf(io, of))) ?? [])
  if (bytes.length < 44) return none(': this key has not read exactly these secrets from this server')
  const key = await readCacheKey(io, bytes.subarray(0, 16))
  if (!key) return none(': the keychain is locked or has no key')
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(16, 28)).setAAD(Buffer.from(textOf(of)))
    decipher.setAuthTag(bytes.subarray(28, 44))
    const text = Buffer.concat([decipher.update(bytes.subarray(44)), decipher.final()]).toString()
    const { time, entries, files = [] } = JSON.parse(text) as Stored
    const inFiles = files.map(
      ([name, found]) => [name, typeof found === 'string' ? Buffer.from(found, 'base64') : decoded(found)] as const,
    )
    return { time, values: decoded(entries), files: new Map(inFiles) }
  } catch {
    const cause = io.env['PLATFORM_PASSPHRASE']
      ? 'PLATFORM_PASSPHRASE has changed'
      : 'the key in the keychain has changed'
    io.err(`platform: warning: cannot decrypt the cached copy: ${cause}, or the file is corrupt\n`)
    return undefined
  }
}

/** Call when the server denies access: the user must not keep a copy. */
export const dropCopy = (io: Io, of: CopyId): Promise<void> => io.files.remove(fileOf(io, of))

/** Removes all copies of a key, for logout and rotation. */
export async function dropCopies(io: Io, owner: Owner): Promise<void> {
  await io.files.removeAll(ownerDirectory(io, owner))
  await removeLegacyCopies(io)
}

/** Removes files of an older layout, which had no directory per owner. Ignores errors. */
async function removeLegacyCopies(io: Io): Promise<void> {
  const all = allCopies(io.env)
  const names = await io.listDirectory(all).catch(() => [])
  for (const name of names) if (/^[0-9a-f]{64}$/.test(name)) await io.files.remove(`${all}/${name}`).catch(() => {})
}
