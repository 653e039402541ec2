// Elements of field paths in FieldsV1 format: `f:name`, `k:{"id":1}`, `v:"x"`, `i:0`.

import { isObject, type Json, type JsonObject } from '../api/object.ts'

/** The canonical format, so that equal elements are equal strings. */
export type PathElement = string

/** In output order. */
const KINDS = 'fkvi'
/** Matches values that are canonical already, which nearly all are. */
const PLAIN_VALUE = /^v:"[\w./:@ -]*"$/
const PLAIN_KEY = /^k:\{"[\w./:@ -]+":"[\w./:@ -]*"\}$/

export function fieldElement(name: string): PathElement {
  return `f:${name}`
}

export function valueElement(value: Json): PathElement {
  return `v:${JSON.stringify(value)}`
}

export function keyElement(keys: JsonObject): PathElement {
  const parts = Object.keys(keys)
    .sort()
    .map(name => `${JSON.stringify(name)}:${JSON.stringify(keys[name])}`)
  return `k:{${parts.join(',')}}`
}

/**
 * The canonical form of a client's element; undefined for unknown types, which may come from a later version. Throws if
 * invalid.
 */
export function readElement(text: string): PathElement | undefined {
  if (text.length < 2) throw new SyntaxError('key must be 2 characters long:')
  if (text[1] !== ':') throw new SyntaxError(`missing colon: ${text}`)
  const rest = text.slice(2)
  switch (text[0]) {
    case 'f':
      return text
    case 'v':
      return PLAIN_VALUE.test(text) ? text : valueElement(JSON.parse(rest))
    case 'k': {
      if (PLAIN_KEY.test(text)) return text
      const keys: unknown = JSON.parse(rest)
      if (!isObject(keys)) throw new SyntaxError(`expected keys: ${text}`)
      return keyElement(keys)
    }
    case 'i':
      if (!/^[+-]?\d{1,15}$/.test(rest)) throw new SyntaxError(`expected an index: ${text}`)
      return `i:${Number(rest)}`
    default:
      return undefined
  }
}

/** The form in conflict messages: `.spec`, `[name="a"]`, `[="x"]`, `[0]`. */
export function printElement(element: PathElement): string {
  const rest = element.slice(2)
  switch (element[0]) {
    case 'f':
      return `.${rest}`
    case 'v':
      return `[=${rest}]`
    case 'k': {
      const keys: JsonObject = JSON.parse(rest)
      return `[${Object.keys(keys)
        .map(name => `${name}=${JSON.stringify(keys[name])}`)
        .join(',')}]`
    }
    default:
      return `[${rest}]`
  }
}

export function printPath(path: readonly PathElement[]): string {
  return path.map(printElement).join('')
}

/** Sorts elements in the order of FieldsV1. */
export function sortElements(elements: Iterable<PathElement>): PathElement[] {
  const list = [...elements]
  // Most sets contain only fields, which sort as strings.
  return list.every(element => element.startsWith('f')) ? list.sort() : list.sort(compareElements)
}

/** Fields, then keys, then values, then indexes. */
function compareElements(a: PathElement, b: PathElement): number {
  if (a === b) return 0
  if (a.charCodeAt(0) !== b.charCodeAt(0)) return KINDS.indexOf(a[0]!) - KINDS.indexOf(b[0]!)
  if (a.startsWith('f')) return a < b ? -1 : 1
  // Strings without escapes sort as spelled, except for the closing quote, which would sort before some letters.
  if (a.startsWith('v:"') && b.startsWith('v:"') && !a.includes('\\') && !b.includes('\\')) {
    return a.slice(0, -1) < b.slice(0, -1) ? -1 : 1
  }
  const left: Json = JSON.parse(a.slice(2))
  const right: Json = JSON.parse(b.slice(2))
  return isObject(left) && isObject(right) ? compareKeys(left, right) : compareValues(left, right)
}

function compareKeys(a: JsonObject, b: JsonObject): number {
  const left = Object.entries(a)
  const right = Object.entries(b)
  for (const [index, [name, value]] of left.entries()) {
    const other = right[index]
    if (other === undefined) return 1
    if (name !== other[0]) return name < other[0] ? -1 : 1
    const order = compareValues(value, other[1])
    if (order !== 0) return order
  }
  return left.length - right.length
}

function compareValues(a: Json, b: Json): number {
  const rank = valueRank(a) - valueRank(b)
  if (rank !== 0) return rank
  if (typeof a === 'number' && typeof b === 'number') return a - b
  const [left, right] = typeof a === 'string' && typeof b === 'string' ? [a, b] : [JSON.stringify(a), JSON.stringify(b)]
  return left < right ? -1 : Number(left > right)
}

function valueRank(value: Json): number {
  const rank = ['number', 'string', 'boolean'].indexOf(typeof value)
  return rank === -1 ? 3 : rank
}
