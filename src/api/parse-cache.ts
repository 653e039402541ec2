// Caches recently parsed objects by their stored bytes.
// All readers share the objects, so nobody may change them.

import { openFifoCache } from './fifo-cache.ts'
import type { Resource } from './object.ts'

const decoder = new TextDecoder()
const largest = 64 * 1024
const openCache = (bytes: number) => openFifoCache<Uint8Array, Resource>(bytes, json => json.length)
const cache = openCache(4096 * 1024)
/** Small: only one write needs the object, and objects that live for seconds are a burden for the garbage collector. */
const replaced = openCache(128 * 1024)

/** For bytes that are read once. */
export const parseOnce = (json: Uint8Array): Resource => JSON.parse(decoder.decode(json)) as Resource

/** The bytes must never change. */
export const parseStored = (json: Uint8Array): Resource => parseInto(cache, json)

/** For an object that a write is about to replace. */
export const parseToReplace = (json: Uint8Array): Resource => parseInto(replaced, json)

function parseInto(target: typeof cache, json: Uint8Array): Resource {
  const cached = cache.get(json) ?? replaced.get(json)
  if (cached !== undefined) return cached
  const object = parseOnce(json)
  if (json.length < largest) target.add(json, object)
  return object
}
