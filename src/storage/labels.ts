// Finds metadata.labels in a stored text without parsing the rest, because the index needs the labels of every object and commit.

import type { Buffer } from 'node:buffer'
import { canonical } from '../api/encode.ts'
import { emptyMap, isObject } from '../api/object.ts'
import type { Labels } from './store.ts'

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c]
const [OPEN, CLOSE, OPEN_LIST, CLOSE_LIST] = [0x7b, 0x7d, 0x5b, 0x5d]

/** The text must be canonical JSON without spaces. undefined for any other text. */
export function labelsOf(text: Buffer): Labels {
  const metadata = memberOf(text, 0, 'metadata')
  const start = metadata < 0 ? -1 : memberOf(text, metadata, 'labels')
  if (start < 0 || text[start] !== OPEN) return undefined
  return fromJson(text.toString('utf8', start, endOf(text, start)))
}

/** The same, if the labels of the text are known. */
export const sharedLabels = (labels: Labels): Labels => (labels ? fromJson(canonical(labels)) : undefined)

function fromJson(json: string): Labels {
  const seen = known.get(json)
  if (seen !== undefined) return seen
  const labels = read(json)
  if (json.length > longest) return labels
  if (known.size >= KNOWN) known.clear()
  known.set(json, labels)
  return labels
}

/** Objects with the same labels share one labels object, because most objects of a kind look alike. */
const known = new Map<string, Labels>()
const KNOWN = 20_000
/** Longer ones are rarely shared. */
const longest = 1024

function read(json: string): Labels {
  const labels: unknown = JSON.parse(json)
  if (!isObject(labels)) return undefined
  const map = emptyMap<string>()
  let some = false
  for (const key of Object.keys(labels)) {
    const value = labels[key]
    if (typeof value !== 'string') continue
    map[key] = value
    some = true
  }
  return some ? map : undefined
}

/** The offset of a member's value, in the object that begins at `at`; -1: the member does not exist. */
function memberOf(text: Buffer, at: number, name: string): number {
  if (text[at] !== OPEN) return -1
  let key = at + 1
  while (text[key] === QUOTE) {
    const colon = endOfString(text, key)
    if (colon - key === name.length + 2 && isAt(text, key + 1, name)) return colon + 1
    const end = endOf(text, colon + 1)
    if (text[end] !== COMMA) return -1
    key = end + 1
  }
  return -1
}

function isAt(text: Buffer, at: number, name: string): boolean {
  for (let i = 0; i < name.length; i++) if (text[at + i] !== name.charCodeAt(i)) return false
  return true
}

/** The position after the value that begins at `at`. */
function endOf(text: Buffer, at: number): number {
  let depth = 0
  for (let i = at; i < text.length; ) {
    const byte = text[i]
    if (byte === QUOTE) {
      i = endOfString(text, i)
      if (depth === 0) return i
      continue
    }
    if (byte === OPEN || byte === OPEN_LIST) depth++
    else if (byte === CLOSE || byte === CLOSE_LIST) {
      // A number or a literal ends with its enclosing object.
      if (depth === 0) return i
      depth--
      if (depth === 0) return i + 1
    } else if (byte === COMMA && depth === 0) return i
    i++
  }
  return text.length
}

function endOfString(text: Buffer, quote: number): number {
  let i = quote + 1
  while (i < text.length && text[i] !== QUOTE) i += text[i] === BACKSLASH ? 2 : 1
  return i + 1
}

/** Every label as `key=value`. */
export const termsOf = (labels: Labels): readonly string[] =>
  labels === undefined ? [] : Object.keys(labels).map(key => `${key}=${labels[key]}`)
