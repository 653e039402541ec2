// An authenticated, encrypted stream: pieces under AES-256-GCM, each bound to its position. Backups use it.

import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto'
import type { RingKey } from './key-ring.ts'

/** The first line, in clear text: the type of the stream and the id of its key. Every piece is bound to it. */
type Head = { readonly platform: 'backup'; readonly format: number; readonly key: string; readonly salt: string }

const FORMAT = 1

const TAG = 16
const MAX_PIECE = 64 * 2 ** 20
const LONGEST_HEAD = 1024

const keyOf = ({ key }: RingKey, salt: Buffer) => Buffer.from(hkdfSync('sha256', key, salt, 'platform backup', 32))

/** The number of the piece, and whether it is the last. So pieces cannot be moved, omitted or truncated. */
function nonceOf(index: number, last: boolean): Buffer {
  const nonce = Buffer.alloc(12)
  nonce.writeBigUInt64BE(BigInt(index), 3)
  nonce[11] = last ? 1 : 0
  return nonce
}

export async function* sealStream(
  pieces: AsyncIterable<Buffer>,
  key: RingKey,
  random: (size: number) => Uint8Array,
): AsyncGenerator<Buffer> {
  const salt = Buffer.from(random(32))
  const head: Head = { platform: 'backup', format: FORMAT, key: key.id, salt: salt.toString('hex') }
  const line = Buffer.from(`${JSON.stringify(head)}\n`)
  const own = keyOf(key, salt)
  yield line
  const seal = (piece: Buffer, index: number, last: boolean) => {
    const cipher = createCipheriv('aes-256-gcm', own, nonceOf(index, last)).setAAD(line)
    const text = Buffer.concat([cipher.update(piece), cipher.final(), cipher.getAuthTag()])
    const size = Buffer.alloc(4)
    size.writeUInt32BE(text.length)
    return Buffer.concat([size, text])
  }
  let index = 0
  let buffered: Buffer | undefined
  for await (const piece of pieces) {
    if (buffered) yield seal(buffered, index++, false)
    buffered = piece
  }
  yield seal(buffered ?? Buffer.alloc(0), index, true)
}

/** The key ring does not have the key of a stream. */
export class UnknownKeyError extends Error {}

/**
 * Throws if no key of this ring encrypted the stream, or if it was changed or truncated. With `tell` it reports problems and decrypts
 * as much as possible; then only an unknown key throws.
 */
export async function* openStream(
  source: AsyncIterable<Uint8Array>,
  keys: readonly RingKey[],
  tell?: (damage: string) => void,
): AsyncGenerator<Buffer> {
  try {
    yield* openPieces(source, keys, tell)
  } catch (error) {
    if (!(tell && error instanceof DamageError)) throw error
    tell(error.message)
  }
}

class DamageError extends Error {}

async function* openPieces(
  source: AsyncIterable<Uint8Array>,
  keys: readonly RingKey[],
  tell?: (damage: string) => void,
): AsyncGenerator<Buffer> {
  const input = reader(source)
  const line = await input.line()
  const head = readHead(line)
  const key = keys.find(({ id }) => id === head.key)
  if (!key)
    throw new UnknownKeyError(
      `the backup is encrypted with the key ${head.key}, which is not in the key ring (keys: ${keys.map(({ id }) => id).join(', ')})`,
    )
  const own = keyOf(key, Buffer.from(head.salt, 'hex'))
  for (let index = 0, last = false; !last; index++) {
    const size = (await input.take(4)).readUInt32BE()
    if (size < TAG || size > MAX_PIECE) throw damaged(index)
    const text = await input.take(size)
    last = await input.isOver()
    const open = createDecipheriv('aes-256-gcm', own, nonceOf(index, last)).setAAD(line)
    open.setAuthTag(text.subarray(-TAG))
    const piece = open.update(text.subarray(0, -TAG))
    try {
      open.final()
    } catch {
      if (!tell) throw damaged(index)
      tell(damaged(index).message)
      continue
    }
    yield piece
  }
}

const damaged = (index: number) =>
  new DamageError(`chunk ${index + 1} was modified or truncated, or encrypted with another key of the same id`)

function readHead(line: Buffer): Head {
  const head = parsed(line)
  if (head.platform !== 'backup' || !Number.isInteger(head.format))
    throw new DamageError('not a backup of this platform')
  if ((head.format as number) > FORMAT)
    throw new DamageError(
      `the backup has format ${head.format}, but this version of platform supports formats up to ${FORMAT}: use a newer version`,
    )
  if (head.format !== FORMAT || !/^[0-9a-f]{64}$/.test(head.salt ?? '')) throw new DamageError('the backup is damaged')
  return head as Head
}

function parsed(line: Buffer): { readonly [field in keyof Head]?: Head[field] | undefined } {
  try {
    return (JSON.parse(line.toString()) ?? {}) as Partial<Head>
  } catch {
    return {}
  }
}

/** Reads chunks of a requested size from chunks of any size. */
function reader(source: AsyncIterable<Uint8Array>) {
  const chunks = source[Symbol.asyncIterator]()
  let buffered = Buffer.alloc(0)
  const more = async (): Promise<boolean> => {
    const { value, done } = await chunks.next()
    if (!done) buffered = Buffer.concat([buffered, value])
    return !done
  }
  const cut = (size: number): Buffer => {
    const taken = buffered.subarray(0, size)
    buffered = buffered.subarray(size)
    return taken
  }
  return {
    async line(): Promise<Buffer> {
      while (!buffered.includes(0x0a) && buffered.length < LONGEST_HEAD && (await more()));
      const end = buffered.indexOf(0x0a)
      return end === -1 || end > LONGEST_HEAD ? Buffer.alloc(0) : cut(end + 1)
    },
    async take(size: number): Promise<Buffer> {
      while (buffered.length < size) if (!(await more())) throw new DamageError('the backup is truncated')
      return cut(size)
    },
    async isOver(): Promise<boolean> {
      while (buffered.length === 0) if (!(await more())) return true
      return false
    },
  }
}
