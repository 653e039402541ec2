// Objects by the bytes they are stored as: of those looked at last, nobody parses again what somebody read already. Documents and
// the registry read here. What is handed out is everybody's, and so nobody's to change.

import { openNewest } from './newest.ts'
import type { Resource } from './object.ts'

const decoder = new TextDecoder()
const largest = 64 * 1024
const known = openNewest<Uint8Array, Resource>(4 * 1024 * 1024, json => json.length)

/** The bytes must never change. */
export function parseStored(json: Uint8Array): Resource {
  const there = known.get(json)
  if (there !== undefined) return there
  const object = JSON.parse(decoder.decode(json)) as Resource
  if (json.length < largest) known.add(json, object)
  return object
}
