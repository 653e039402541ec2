// The last values a program was run with, encrypted, for when the service is away. run.ts keeps and asks for them.

import { createCipheriv, createDecipheriv, createHash, scryptSync } from 'node:crypto'
import type { Io } from '../../host/command.ts'
import { allCopies, copiesDirectory } from '../paths.ts'

type Owner = { readonly server: string; readonly key: string }
/** What the copy is of: other secrets, servers and keys have other copies. */
export type CopyOf = Owner & { readonly asked: readonly string[]; readonly place: string }

const digest = (...parts: readonly string[]) => createHash('sha256').update(JSON.stringify(parts)).digest('hex')
/** Says nothing of the key: that has more chance in it than anybody could try. */
const ownerOf = ({ server, key }: Owner) => digest('copies of', server, key)
const textOf = (of: CopyOf) => JSON.stringify([ownerOf(of), of.server, of.place, of.asked])
const fileOf = (io: Io, of: CopyOf) => `${copiesDirectory(io.env, ownerOf(of))}/${digest(textOf(of))}`

/** From the keychain, or of a passphrase; undefined: then there is no copy, for a key beside it would seal nothing. */
async function keyOf(io: Io, salt: Uint8Array): Promise<Buffer | undefined> {
  const { PLATFORM_PASSPHRASE: passphrase } = io.env
  if (passphrase) return scryptSync(passphrase, salt, 32)
  const known = await (await io.keychain())?.get('last-known')
  return known ? Buffer.from(known, 'base64') : undefined
}

/** Another one where there is none: only who keeps a copy may make it, for what was sealed with the one of before is lost then. */
async function keyFor(io: Io, salt: Uint8Array): Promise<Buffer | undefined> {
  const known = await keyOf(io, salt)
  if (known) return known
  const keychain = await io.keychain()
  const made = Buffer.from(io.random(32))
  const isKept = await keychain?.set('last-known', made.toString('base64')).then(
    () => true,
    () => false,
  )
  return isKept ? made : undefined
}

/** A copy that cannot be written is no reason not to run. */
export async function keepCopy(io: Io, of: CopyOf, values: ReadonlyMap<string, Buffer>): Promise<void> {
  try {
    const [salt, nonce] = [Buffer.from(io.random(16)), Buffer.from(io.random(12))]
    const key = await keyFor(io, salt)
    if (!key) return
    const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(textOf(of)))
    const entries = [...values].map(([name, value]) => [name, value.toString('base64')])
    const sealed = Buffer.concat([cipher.update(JSON.stringify({ time: io.now(), entries })), cipher.final()])
    await io.files.write(fileOf(io, of), Buffer.concat([salt, nonce, cipher.getAuthTag(), sealed]))
    await sweep(io)
  } catch (error) {
    io.err(`platform: warning: no copy was kept for when the service is away: ${(error as Error).message}\n`)
  }
}

export type Copy = { readonly time: number; readonly values: ReadonlyMap<string, Buffer> }

/** undefined where there is none, or none that opens; which it is is said. */
export async function readCopy(io: Io, of: CopyOf): Promise<Copy | undefined> {
  const none = (why: string) => {
    io.err(`platform: there is no copy of ${of.asked.join(', ')} to fall back to${why}\n`)
    return undefined
  }
  if (!io.env['PLATFORM_PASSPHRASE'] && !(await io.keychain()))
    return none(': without a keychain or PLATFORM_PASSPHRASE none is made')
  const bytes = Buffer.from((await io.files.read(fileOf(io, of))) ?? [])
  if (bytes.length < 44) return none(': this key has not read just these from this server')
  const key = await keyOf(io, bytes.subarray(0, 16))
  if (!key) return none(': the keychain does not open')
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(16, 28)).setAAD(Buffer.from(textOf(of)))
    decipher.setAuthTag(bytes.subarray(28, 44))
    const text = Buffer.concat([decipher.update(bytes.subarray(44)), decipher.final()]).toString()
    const { time, entries } = JSON.parse(text) as { time: number; entries: [string, string][] }
    return { time, values: new Map(entries.map(([name, value]) => [name, Buffer.from(value, 'base64')])) }
  } catch {
    const whose = io.env['PLATFORM_PASSPHRASE']
      ? 'PLATFORM_PASSPHRASE is not the one it was made with'
      : 'its key in the keychain is another one'
    io.err(
      `platform: warning: the copy for when the service is away does not open: ${whose}, or the file was changed\n`,
    )
    return undefined
  }
}

/** Whoever may not read a secret any more has no copy of it either. */
export const dropCopy = (io: Io, of: CopyOf): Promise<void> => io.files.remove(fileOf(io, of))

/** Whoever signs out leaves no copies behind. */
export async function dropCopies(io: Io, owner: Owner): Promise<void> {
  await io.files.removeAll(copiesDirectory(io.env, ownerOf(owner)))
  await sweep(io)
}

/** Copies once lay side by side, whosever they were: nobody reads those any more. Directories, listed with a slash, are of today. What cannot be removed stays. */
async function sweep(io: Io): Promise<void> {
  const all = allCopies(io.env)
  const names = await io.listDirectory(all).catch(() => [])
  for (const name of names) if (/^[0-9a-f]{64}$/.test(name)) await io.files.remove(`${all}/${name}`).catch(() => {})
}
