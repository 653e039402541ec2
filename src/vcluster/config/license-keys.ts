// Keys that sign licenses: creates a key pair, and reads private and trusted public keys in PEM.

import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { allOf, type Io, UsageError } from '../../host/command.ts'
import type { PublicKeys } from './license.ts'

const maxBytes = 64 * 1024
const publicPem = /-----BEGIN PUBLIC KEY-----[^-]+-----END PUBLIC KEY-----/g

export function makeKeyPair(): { readonly privateKey: string; readonly publicKey: string; readonly name: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  return {
    privateKey: privateKey.export({ format: 'pem', type: 'pkcs8' }) as string,
    publicKey: publicKey.export({ format: 'pem', type: 'spki' }) as string,
    name: keyName(publicKey),
  }
}

const spkiOf = (key: KeyObject) => key.export({ format: 'der', type: 'spki' })

/** The name follows from the key, so that a license finds its key without a registry of names. */
export const keyName = (publicKey: KeyObject): string =>
  `ed25519-${createHash('sha256').update(spkiOf(publicKey)).digest('hex').slice(0, 16)}`

/** Throws UsageError, which never contains the content of the file. */
export async function readPrivateKey(file: string, io: Io): Promise<KeyObject> {
  const text = await readText(file, io)
  const key = keyOf(() => createPrivateKey(text))
  if (key?.asymmetricKeyType !== 'ed25519')
    throw new UsageError([`${file} is not an Ed25519 private key in PEM: create one with platform license keygen`])
  return key
}

/** Reads all files, and all keys of each. Throws UsageError. */
export async function readTrustedKeys(files: readonly string[], io: Io): Promise<PublicKeys> {
  const read = await allOf(files.map(async file => publicKeys(file, await readText(file, io))))
  return Object.fromEntries(read.flat().map(key => [keyName(key), spkiOf(key).toString('base64')]))
}

function publicKeys(file: string, text: string): readonly KeyObject[] {
  if (text.includes('PRIVATE KEY-----'))
    throw new UsageError([`--license-trust: ${file} is a private key; pass its public key, which ends in .pub`])
  const keys = (text.match(publicPem) ?? []).map(pem => keyOf(() => createPublicKey(pem)))
  const usable = keys.flatMap(key => (key?.asymmetricKeyType === 'ed25519' ? [key] : []))
  if (!usable.length || usable.length !== keys.length)
    throw new UsageError([`--license-trust: ${file} is not an Ed25519 public key in PEM`])
  return usable
}

async function readText(file: string, io: Io): Promise<string> {
  const bytes = await io.readFile(file).catch((error: Error) => {
    throw new UsageError([error.message])
  })
  return new TextDecoder().decode(bytes.subarray(0, maxBytes))
}

function keyOf(read: () => KeyObject): KeyObject | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}
