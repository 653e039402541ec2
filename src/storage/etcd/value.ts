// Encodes a value for etcd: a header, and the text with its long ciphertexts as bytes instead of base64, because etcd limits the size of a request.

import { Buffer } from 'node:buffer'
import { SEALED } from '../encryption.ts'
import type { Value } from '../store.ts'

/** Identifies the commit that wrote a value, so that a commit with an unknown outcome can be recognized. */
export type Nonce = Buffer
export const nonceBytes = 12

/**
 * The header of version 1: a byte of version, the nonce, the gap as 32 bits, and the number of ciphertexts as 16 bits. For each
 * ciphertext follow its offset in the text and the length of its bytes, as 32 bits.
 */
const version = 1
const fixedBytes = 1 + nonceBytes + 4 + 2
const maxCiphertexts = 0xffff
/** Shorter ciphertexts stay in the text: the header would be as long as the difference. */
const minBase64 = 64

const mark = Buffer.from(`"${SEALED}`)
const [quote, colon] = [0x22, 0x3a]

type Ciphertext = { readonly start: number; readonly end: number; readonly bytes: Buffer }

export function encodeValue({ text, gap }: Value, nonce: Nonce): Buffer {
  const found = ciphertextsOf(text)
  const header = Buffer.alloc(fixedBytes + found.length * 8)
  header[0] = version
  nonce.copy(header, 1)
  header.writeUInt32BE(gap, 1 + nonceBytes)
  header.writeUInt16BE(found.length, 5 + nonceBytes)
  const parts: Buffer[] = [header]
  let last = 0
  for (const [index, { start, end, bytes }] of found.entries()) {
    header.writeUInt32BE(start, fixedBytes + index * 8)
    header.writeUInt32BE(bytes.length, fixedBytes + index * 8 + 4)
    parts.push(text.subarray(last, start), bytes)
    last = end
  }
  parts.push(text.subarray(last))
  return Buffer.concat(parts)
}

/** The number of bytes of the ciphertexts in an encoded value. */
export function ciphertextBytes(stored: Buffer): number {
  let sum = 0
  for (let index = 0; index < stored.readUInt16BE(5 + nonceBytes); index++)
    sum += stored.readUInt32BE(fixedBytes + index * 8 + 4)
  return sum
}

export type Decoded = Value & { readonly nonce: Nonce }

/** Throws for bytes that this engine did not write. */
export function decodeValue(stored: Buffer): Decoded {
  if (stored.length < fixedBytes || stored[0] !== version) throw new TypeError('the value has an unknown format')
  const nonce = stored.subarray(1, 1 + nonceBytes)
  const gap = stored.readUInt32BE(1 + nonceBytes)
  const count = stored.readUInt16BE(5 + nonceBytes)
  const body = stored.subarray(fixedBytes + count * 8)
  if (count === 0) return { text: body, gap, nonce }
  const parts: Buffer[] = []
  let [from, written] = [0, 0]
  for (let index = 0; index < count; index++) {
    const start = stored.readUInt32BE(fixedBytes + index * 8)
    const length = stored.readUInt32BE(fixedBytes + index * 8 + 4)
    const plain = start - written
    if (plain < 0 || from + plain + length > body.length) throw new TypeError('the value is damaged')
    const base64 = Buffer.from(body.toString('base64url', from + plain, from + plain + length), 'latin1')
    parts.push(body.subarray(from, from + plain), base64)
    written = start + base64.length
    from += plain + length
  }
  parts.push(body.subarray(from))
  return { text: Buffer.concat(parts), gap, nonce }
}

/** Only ciphertexts that decode and encode to the same text, because clients may write text that looks like one. */
function ciphertextsOf(text: Buffer): Ciphertext[] {
  const found: Ciphertext[] = []
  for (let at = text.indexOf(mark); at !== -1 && found.length < maxCiphertexts; at = text.indexOf(mark, at + 1)) {
    const idEnd = text.indexOf(colon, at + mark.length)
    const end = text.indexOf(quote, at + mark.length)
    const start = idEnd + 1
    if (idEnd === -1 || end === -1 || end < idEnd || end - start < minBase64) continue
    const base64 = text.toString('latin1', start, end)
    const bytes = Buffer.from(base64, 'base64url')
    if (bytes.toString('base64url') === base64) found.push({ start, end, bytes })
  }
  return found
}
