// Finds words in the bytes of objects, so that informers need not parse what they ignore. All filters share one search per object.

import { Buffer } from 'node:buffer'
import { openFifoCache } from '../api/fifo-cache.ts'
import type { Document } from '../api/resources.ts'

/** The JSON as a string with a character for each byte, and the words that were found in it, a bit each. */
type Searched = { readonly text: string; readonly found: number }

const words: string[] = []
const maxWords = 31
let search = /(?!)/g

/** Informers read the same page of a list, or the same batch of events, one after the other. */
const recentBytes = 1024 * 1024
let recent = openRecent()

/** Whether an object has one of these keys somewhere, by its bytes alone: it may have them elsewhere than expected. */
export function mentions(...keys: readonly string[]): (document: Document) => boolean {
  const wanted = keys.reduce((bits, key) => bits | bitOf(key), 0)
  return ({ json }) => (searched(json).found & wanted) !== 0
}

/** The bytes as a string, a character each: the cheapest thing to search in. */
export const latin1 = (json: Uint8Array): string => searched(json).text

function bitOf(word: string): number {
  if (!words.includes(word)) {
    if (words.length === maxWords) throw new Error(`filters of informers use more than ${maxWords} words`)
    words.push(word)
    search = new RegExp(`"(${words.map(escaped).join('|')})":`, 'g')
    recent = openRecent()
  }
  return 1 << words.indexOf(word)
}

function openRecent() {
  return openFifoCache<Uint8Array, Searched>(recentBytes, json => json.length)
}

const escaped = (word: string) => word.replace(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)

function searched(json: Uint8Array): Searched {
  const known = recent.get(json)
  if (known !== undefined) return known
  const { buffer, byteOffset, byteLength } = json
  const text = Buffer.from(buffer, byteOffset, byteLength).toString('latin1')
  let found = 0
  search.lastIndex = 0
  for (let match = search.exec(text); match; match = search.exec(text)) found |= 1 << words.indexOf(match[1] ?? '')
  const one = { text, found }
  recent.add(json, one)
  return one
}
