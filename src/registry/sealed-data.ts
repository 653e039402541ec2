// Packs secret data for encryption (D72).
// The data is base64, and so is the ciphertext: decoding it first saves a third of the size.

import { Buffer } from 'node:buffer'
import { canonical } from '../api/codec.ts'
import { emptyMap, isObject, type Json } from '../api/object.ts'

/**
 * Marks the format. JSON never starts with this byte. Up to 0.1, data was encrypted as JSON, which is still readable.
 */
const packed = 1

/**
 * One byte for the format, four for the length of the header, the header, and the decoded values. The header is JSON:
 * each key with the size of its value in bytes. Values other than maps of base64 are encrypted as JSON.
 */
export function packData(value: Json): Buffer {
  const parts: Buffer[] = []
  const lengths = emptyMap<number>()
  for (const key of isObject(value) ? Object.keys(value) : []) {
    const text = (value as { readonly [key: string]: Json })[key]
    const bytes = typeof text === 'string' ? Buffer.from(text, 'base64') : undefined
    // Non-canonical base64 would not survive a round trip, because the last character may have unused bits.
    if (bytes?.toString('base64') !== text || !bytes) return Buffer.from(canonical(value))
    parts.push(bytes)
    lengths[key] = bytes.length
  }
  if (!isObject(value)) return Buffer.from(canonical(value))
  const head = Buffer.from(JSON.stringify(lengths))
  const start = Buffer.alloc(5, packed)
  start.writeUInt32BE(head.length, 1)
  return Buffer.concat([start, head, ...parts])
}

/** Throws if it is neither of the two formats. */
export function unpackData(bytes: Buffer): Json {
  if (bytes[0] !== packed) return JSON.parse(bytes.toString()) as Json
  let at = 5 + bytes.readUInt32BE(1)
  const lengths = JSON.parse(bytes.toString('utf8', 5, at)) as { [key: string]: number }
  const data = emptyMap()
  for (const key of Object.keys(lengths)) {
    const end = at + (lengths[key] as number)
    data[key] = bytes.toString('base64', at, end)
    at = end
  }
  if (at !== bytes.length) throw new Error('the lengths in the header do not match')
  return data
}
