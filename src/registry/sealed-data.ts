// Secret data as it is sealed: decoded (D72). Base64 inside of the ciphertext, which is base64 itself, would take a third more room. redact.ts uses it.

import { Buffer } from 'node:buffer'
import { canonical } from '../api/codec.ts'
import { emptyMap, isObject, type Json } from '../api/object.ts'

/** No JSON text begins with this byte. Until 0.1, data was sealed as JSON, and still opens. */
const packed = 1

/**
 * A byte that marks the format, four with the length of the head, the head, and the decoded values one after the other.
 * The head is JSON: keys, and how many bytes each value has. Other values than maps of base64 are sealed as JSON.
 */
export function packData(value: Json): Buffer {
  const parts: Buffer[] = []
  const lengths = emptyMap<number>()
  for (const key of isObject(value) ? Object.keys(value) : []) {
    const text = (value as { readonly [key: string]: Json })[key]
    const bytes = typeof text === 'string' ? Buffer.from(text, 'base64') : undefined
    // What does not come back as it was sent is not decoded: the last character may have bits that stand for nothing.
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

/** Throws where it is neither of the two formats. */
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
  if (at !== bytes.length) throw new Error('the lengths in the head do not fit')
  return data
}
