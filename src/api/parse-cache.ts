// Objects by the bytes they are stored as: of those looked at last, nobody parses again what somebody read already. Documents and
// the registry read here. What is handed out is everybody's, and so nobody's to change.

import { openNewest } from './fifo-cache.ts'
import type { Resource } from './object.ts'

const decoder = new TextDecoder()
const largest = 64 * 1024
const known = openNewest<Uint8Array, Resource>(512 * 1024, json => json.length)

/** For bytes that nobody else has. */
export const parseOnce = (json: Uint8Array): Resource => JSON.parse(decoder.decode(json)) as Resource

/** The bytes must never change. */
export function parseStored(json: Uint8Array): Resource {
  const there = known.get(json)
  if (there !== undefined) return there
  const object = parseOnce(json)
  if (json.length < largest) known.add(json, object)
  return object
}
