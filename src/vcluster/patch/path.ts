// Parses and matches paths such as `metadata.annotations["x.y/z"]` and `subsets[*].ports[0].name`.

import type { Json, JsonObject } from '../../api/object.ts'

/** `index` is set if the segment may also be an array index: `0`, not `"0"`. */
export type Segment = { readonly any: true } | Named
type Named = { readonly key: string; readonly index?: number }
export type Path = readonly Segment[]
/** A path without wildcards: keys and indexes. */
export type ConcretePath = readonly (string | number)[]

export type Match = { readonly path: ConcretePath; readonly value: Json }
/** The path at which matching stopped, and the reason, for the trace. */
export type Miss = { readonly path: ConcretePath; readonly reason: string }

/** `column` is the position of the error, counted from 1. */
export class PathError extends Error {
  readonly column: number
  constructor(message: string, column: number) {
    super(message)
    this.column = column
  }
}

const MAX_LENGTH = 1024
const MAX_DEPTH = 64
const WHITESPACE = /\s/
const PLAIN = /^[A-Za-z_$][\w$-]*$/
const ESCAPES: { readonly [letter: string]: string } = { n: '\n', t: '\t', r: '\r', b: '\b', f: '\f' }

/** The empty path is the whole object. */
export function parsePath(text: string): Path {
  if (text.length > MAX_LENGTH) throw new PathError(`the path has more than ${MAX_LENGTH} characters`, MAX_LENGTH + 1)
  const segments: Segment[] = []
  let at = skip(text, 0)
  while (at < text.length) {
    const read = text[at] === '[' ? readBracket(text, at) : readName(text, at)
    segments.push(read.segment)
    if (segments.length > MAX_DEPTH) throw new PathError(`the path has more than ${MAX_DEPTH} segments`, at + 1)
    at = skip(text, read.end)
    if (at === text.length || text[at] === '[') continue
    if (text[at] !== '.') throw new PathError(`expected "." or "[", found ${JSON.stringify(text[at])}`, at + 1)
    at = skip(text, at + 1)
    if (at === text.length || text[at] === '[')
      throw new PathError('a segment is empty: expected a name after the dot', at + 1)
  }
  return segments
}

type Read = { readonly segment: Segment; readonly end: number }

function readBracket(text: string, open: number): Read {
  const start = skip(text, open + 1)
  if (isQuote(text[start])) {
    const quoted = readQuoted(text, start)
    const close = skip(text, quoted.end)
    if (text[close] !== ']') throw unclosed(text, open, close)
    return { segment: quoted.segment, end: close + 1 }
  }
  const close = text.indexOf(']', start)
  if (close < 0) throw unclosed(text, open, text.length)
  const inner = text.slice(start, close)
  const stray = inner.search(/["'[]/)
  if (stray >= 0)
    throw new PathError(
      `quote the key: ${JSON.stringify(text[start + stray])} is a special character`,
      start + stray + 1,
    )
  return { segment: bare(inner.trimEnd(), start), end: close + 1 }
}

function unclosed(text: string, open: number, at: number): PathError {
  if (at >= text.length) return new PathError('the bracket is not closed: "]" is missing', open + 1)
  return new PathError(`expected "]", found ${JSON.stringify(text[at])}`, at + 1)
}

function readName(text: string, start: number): Read {
  if (isQuote(text[start])) return readQuoted(text, start)
  let end = start
  while (end < text.length && text[end] !== '.' && text[end] !== '[') {
    if (text[end] === ']' || isQuote(text[end]))
      throw new PathError(`unexpected ${JSON.stringify(text[end])}: quote the whole segment`, end + 1)
    end++
  }
  return { segment: bare(text.slice(start, end).trimEnd(), start), end }
}

function readQuoted(text: string, start: number): Read {
  let key = ''
  for (let at = start + 1; at < text.length; at++) {
    const letter = text[at] as string
    if (letter === text[start]) {
      if (key === '') throw new PathError('a segment is empty', start + 1)
      return { segment: { key }, end: at + 1 }
    }
    if (letter !== '\\') {
      key += letter
      continue
    }
    const escaped = text[++at] ?? ''
    const code = /^u([0-9a-fA-F]{4})/.exec(text.slice(at, at + 5))?.[1]
    if (code !== undefined) at += 4
    else if (!/^["'\\/ntrbf]$/.test(escaped) && escaped)
      throw new PathError(`invalid escape \\${escaped}; use \\" \\' \\\\ \\/ \\n \\t \\r \\b \\f \\u0000`, at)
    key += code === undefined ? (ESCAPES[escaped] ?? escaped) : String.fromCharCode(Number.parseInt(code, 16))
  }
  throw new PathError(`the quote is not closed: ${text[start]} is missing`, start + 1)
}

function bare(word: string, start: number): Segment {
  if (word === '') throw new PathError('a segment is empty', start + 1)
  if (word === '*') return { any: true }
  if (/^-\d+$/.test(word))
    throw new PathError(`${word} is negative: indexes start at 0 (quote it if it is a key)`, start + 1)
  const index = /^(0|[1-9]\d{0,8})$/.test(word) ? Number(word) : undefined
  return index === undefined ? { key: word } : { key: word, index }
}

function skip(text: string, from: number): number {
  let at = from
  while (at < text.length && WHITESPACE.test(text[at] as string)) at++
  return at
}

function isQuote(letter: string | undefined): boolean {
  return letter === '"' || letter === "'"
}

/** Returns all matches in the order of the object. */
export function matchPath(object: JsonObject, path: Path): { readonly matches: Match[]; readonly misses: Miss[] } {
  const matches: Match[] = []
  const misses: Miss[] = []
  const walk = (value: Json, depth: number, prefix: ConcretePath): void => {
    const segment = path[depth]
    if (segment === undefined) matches.push({ path: prefix, value })
    else if (value === null || typeof value !== 'object')
      misses.push({ path: prefix, reason: `is ${nameOf(value)} without fields` })
    else if ('any' in segment) for (const [key, inner] of entries(value)) walk(inner, depth + 1, [...prefix, key])
    else {
      const key = keyIn(value, segment)
      const inner = key === undefined ? undefined : (value as JsonObject)[key]
      if (inner === undefined || key === undefined) misses.push({ path: prefix, reason: missing(value, segment) })
      else walk(inner, depth + 1, [...prefix, key])
    }
  }
  walk(object, 0, [])
  return { matches, misses }
}

function entries(value: readonly Json[] | JsonObject): [string | number, Json][] {
  return Array.isArray(value) ? [...value.entries()] : Object.entries(value)
}

function keyIn(value: readonly Json[] | JsonObject, segment: Named): string | number | undefined {
  if (Array.isArray(value))
    return segment.index !== undefined && segment.index < value.length ? segment.index : undefined
  return Object.hasOwn(value, segment.key) ? segment.key : undefined
}

function missing(value: readonly Json[] | JsonObject, { key, index }: Named): string {
  if (!Array.isArray(value)) return `has no ${JSON.stringify(key)}`
  return index === undefined ? `is a list, ${JSON.stringify(key)} is not an index` : `has only ${value.length} elements`
}

function nameOf(value: Json): string {
  return value === null ? 'null' : `a ${typeof value}`
}

/** Formats a path for `context.path` and messages. parsePath parses the result. */
export function showPath(path: ConcretePath | Path): string {
  return path
    .map((segment, depth) => {
      if (typeof segment === 'number') return `[${segment}]`
      if (typeof segment !== 'string' && 'any' in segment) return '[*]'
      if (typeof segment !== 'string' && segment.index !== undefined) return `[${segment.index}]`
      const key = typeof segment === 'string' ? segment : segment.key
      if (!PLAIN.test(key)) return `[${JSON.stringify(key)}]`
      return depth === 0 ? key : `.${key}`
    })
    .join('')
}

/** The label that a path names; undefined for other paths and invalid ones. */
export function labelIn(text: string): string | undefined {
  try {
    const keys = parsePath(text).map(segment => ('key' in segment ? segment.key : undefined))
    const [metadata, labels, label] = keys
    return keys.length === 3 && metadata === 'metadata' && labels === 'labels' ? label : undefined
  } catch {
    return undefined
  }
}
