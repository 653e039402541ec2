// Caches recently parsed objects by their stored bytes.
// All readers share the objects, so nobody may change them.

import { openFifoCache } from './fifo-cache.ts'
import type { Resource } from './object.ts'

const decoder = new TextDecoder()
const largest = 64 * 1024
const cache = openFifoCache<Uint8Array, Resource>(4096 * 1024, json => json.length)

/** For bytes that are read once. */
export const parseOnce = (json: Uint8Array): Resource => JSON.parse(decoder.decode(json)) as Resource

/** The bytes must never change. */
export function parseStored(json: Uint8Array): Resource {
  const cached = cache.get(json)
  if (cached !== undefined) return cached
  const object = parseOnce(json)
  if (json.length < largest) cache.add(json, object)
  return object
}
