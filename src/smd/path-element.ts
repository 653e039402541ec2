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

/** Sorts elements in the order of FieldsV1: fields, then keys, then values, then indexes. */
export function sortElements(elements: Iterable<PathElement>): PathElement[] {
  const list = [...elements]
  // Most sets contain only fields, which sort as strings.
  if (list.every(element => element.startsWith('f'))) return list.sort()
  // Each element is parsed once, because a sort compares it many times.
  return list
    .map(sortableOf)
    .sort(compareElements)
    .map(({ element }) => element)
}

type Sortable = {
  readonly element: PathElement
  readonly kind: number
  readonly name: string
  readonly values: readonly SortableValue[]
}
/** `text`: of anything but a number. `name`: the key of the value in an element of keys. */
type SortableValue = {
  readonly name: string
  readonly rank: number
  readonly number: number
  readonly text: string
}

const NO_VALUES: readonly SortableValue[] = []

function sortableOf(element: PathElement): Sortable {
  const kind = KINDS.indexOf(element[0] as string)
  if (kind === 0) return { element, kind, name: element, values: NO_VALUES }
  const value: Json = PLAIN_VALUE.test(element) ? element.slice(3, -1) : JSON.parse(element.slice(2))
  const values = isObject(value)
    ? Object.entries(value).map(([name, one]) => sortableValue(name, one))
    : [sortableValue('', value)]
  return { element, kind, name: '', values }
}

function sortableValue(name: string, value: Json): SortableValue {
  const rank = ['number', 'string', 'boolean'].indexOf(typeof value)
  const number = typeof value === 'number' ? value : 0
  const text = typeof value === 'string' ? value : rank === 0 ? '' : JSON.stringify(value)
  return { name, rank: rank === -1 ? 3 : rank, number, text }
}

function compareElements(a: Sortable, b: Sortable): number {
  if (a.kind !== b.kind) return a.kind - b.kind
  if (a.kind === 0) return compareTexts(a.name, b.name)
  for (const [index, value] of a.values.entries()) {
    const other = b.values[index]
    if (other === undefined) return 1
    const order = compareTexts(value.name, other.name) || compareValues(value, other)
    if (order !== 0) return order
  }
  return a.values.length - b.values.length
}

const compareValues = (a: SortableValue, b: SortableValue): number =>
  a.rank - b.rank || a.number - b.number || compareTexts(a.text, b.text)

function compareTexts(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}
