// Encrypts single values before they reach an engine (D28): AES-256-GCM, bound to the object and field of the value.

import { Buffer } from 'node:buffer'
import { createCipheriv, createDecipheriv } from 'node:crypto'
import type { RingKey } from './key-ring.ts'

/** The object and field of a value, as additional authenticated data. A value that was moved to another object or field does not decrypt. */
export type SealContext = {
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
  /** The field of the object. It prevents swapping two encrypted fields. */
  readonly path: string
}

export type Sealer = {
  seal(place: SealContext, plaintext: string | Uint8Array): string
  /** Throws SealError. */
  open(place: SealContext, sealed: string): Buffer
  /** Whether a stored value looks encrypted. A client can send such a value, too, so it is encrypted all the same. */
  isSealed(value: unknown): value is string
  /** Whether the first key of the ring encrypted it. Key rotation looks for values of other keys. */
  isCurrent(sealed: string): boolean
  /** Replaces the ring. */
  use(keys: readonly RingKey[]): void
}

/** Never contains a key, a plaintext or a ciphertext. */
export class SealError extends Error {}

/** The prefix of every encrypted value; the id of its key follows. */
export const SEALED = 'sealed:v1:'
const NONCE = 12
const TAG = 16

/** The first key encrypts; all keys decrypt. */
export function openSealer(options: {
  readonly keys: readonly RingKey[]
  readonly random: (size: number) => Uint8Array
  /** Called for every value that does not decrypt: someone may have changed the file. */
  readonly failed?: (place: SealContext, error: SealError) => void
}): Sealer {
  const { random, failed } = options
  let current = openRing(options.keys)

  return {
    seal(place, plaintext) {
      const nonce = random(NONCE)
      const cipher = createCipheriv('aes-256-gcm', current.key, nonce).setAAD(encode(place))
      const text = [nonce, cipher.update(Buffer.from(plaintext)), cipher.final(), cipher.getAuthTag()]
      return current.mark + Buffer.concat(text).toString('base64url')
    },
    open(place, sealed) {
      try {
        return unseal(current.ring, place, sealed)
      } catch (error) {
        failed?.(place, error as SealError)
        throw error
      }
    },
    isSealed: (value): value is string => typeof value === 'string' && value.startsWith(SEALED),
    isCurrent: sealed => sealed.startsWith(current.mark),
    use: keys => {
      current = openRing(keys)
    },
  }
}

function openRing(keys: readonly RingKey[]) {
  const [first] = keys
  if (first === undefined) throw new SealError('the key ring is empty')
  return { key: first.key, mark: `${SEALED}${first.id}:`, ring: new Map(keys.map(({ id, key }) => [id, key])) }
}

function unseal(ring: ReadonlyMap<string, Uint8Array>, place: SealContext, sealed: string): Buffer {
  const found = parse(sealed)
  if (!found) throw new SealError(`${nameOf(place)} cannot be decrypted: the stored value is not encrypted`)
  const { id, bytes } = found
  const key = ring.get(id)
  if (key === undefined)
    throw new SealError(`${nameOf(place)} is encrypted with the key ${printId(id)}, which the key ring does not have`)
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, NONCE), { authTagLength: TAG })
  decipher.setAAD(encode(place)).setAuthTag(bytes.subarray(-TAG))
  try {
    return Buffer.concat([decipher.update(bytes.subarray(NONCE, -TAG)), decipher.final()])
  } catch {
    throw new SealError(`${nameOf(place)} cannot be decrypted: it was changed, or moved from another object or field`)
  }
}

/** Valid ids are short. The text in place of an invalid one may be anything. */
export const printId = (id: string) => (/^[a-z0-9]{1,32}$/.test(id) ? `"${id}"` : '(invalid id)')

/** Each part has a length prefix, so that no two contexts have the same encoding. */
function encode(place: SealContext): Buffer {
  const parts = [SEALED, place.kind, place.namespace, place.name, place.uid, place.path].map(part => Buffer.from(part))
  return Buffer.concat(
    parts.flatMap(part => {
      const length = Buffer.alloc(4)
      length.writeUInt32BE(part.length)
      return [length, part]
    }),
  )
}

/** The id of the key that encrypted a value. */
export function keyIdOf(sealed: string): string | undefined {
  const end = sealed.indexOf(':', SEALED.length)
  return sealed.startsWith(SEALED) && end !== -1 ? sealed.slice(SEALED.length, end) : undefined
}

function parse(sealed: string): { id: string; bytes: Buffer } | undefined {
  const end = sealed.indexOf(':', SEALED.length)
  const bytes = Buffer.from(sealed.slice(end + 1), 'base64url')
  if (!sealed.startsWith(SEALED) || end < 0 || bytes.length < NONCE + TAG) return undefined
  return { id: sealed.slice(SEALED.length, end), bytes }
}

export function nameOf({ kind, namespace, name, path }: SealContext): string {
  return `${path} of ${kind} ${namespace === '' ? '' : `${namespace}/`}${name}`
}
