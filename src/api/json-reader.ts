// Reads JSON strictly (RFC 8259): finds duplicate keys and rejects inexact numbers.
import { type Draft, emptyMap, type Json, rememberKeys } from './object.ts'
import { ownText } from './own-text.ts'

/** Invalid text. The message has the position and never the text, which may contain a secret. */
export class DecodeError extends Error {
  override readonly name = 'DecodeError'
  readonly line: number
  readonly column: number
  /** The message without the position. */
  readonly problem: string

  constructor(problem: string, line: number, column: number) {
    super(`line ${line}, column ${column}: ${problem}`)
    this.problem = problem
    this.line = line
    this.column = column
  }
}

export type Reading = { readonly value: Json; readonly duplicates: string[] }
/**
 * `maxValues`: the maximum number of values at all depths. `maxKeys`: of different keys at all depths, without the first
 * ten of each map. `maxText`: of characters in strings, keys and numbers.
 */
export type ReadOptions = {
  readonly maxDepth?: number
  readonly maxValues?: number
  readonly maxKeys?: number
  readonly maxText?: number
}

/** The text has more than `maxValues` values, `maxKeys` keys or `maxText` characters. */
export class TooManyValues extends DecodeError {}

export const MAX_DEPTH = 100
/** Upstream stops after 100 too. Without a limit, a small body could cause gigabytes of warnings. */
export const MAX_DUPLICATES = 100
const MAX_DUPLICATE_TEXT = 16_384
/** Maps with this many keys cost no more than other values. Most have the names of a schema. */
export const SMALL_MAP = 10
const long = 96
const VERY_LONG = 65_536
const plain = /[^"\\\u0000-\u001f]*/y
const TWO_TO_53 = 9007199254740992

/**
 * Why a number cannot be stored exactly, or undefined if it can (D4). `JSON.stringify` prints integers below 1e21 in
 * full, so every accepted number survives a round trip.
 */
export function numberProblem(value: number, isInteger: boolean): string | undefined {
  if (!Number.isFinite(value)) return 'this number is too large'
  const size = Math.abs(value)
  if (size > TWO_TO_53 && (isInteger || size < 1e21))
    return 'integers beyond 2^53 cannot be stored exactly: use a string'
  return undefined
}

/** Throws DecodeError. The last of several duplicate keys wins, and `duplicates` has its path: `spec.users[0].name`. */
export function readJson(text: string, options: ReadOptions = {}): Reading {
  const { maxDepth = MAX_DEPTH, maxValues = Number.POSITIVE_INFINITY, maxKeys = Number.POSITIVE_INFINITY } = options
  const { maxText = Number.POSITIVE_INFINITY } = options
  let values = 0
  let textLeft = maxText
  let largeKeys = 0
  const end = text.length
  const path: (string | number)[] = []
  const duplicates = new Set<string>()
  let duplicateText = 0
  let at = 0

  function fail(problem: string, where: number): never {
    throw decodeErrorAt(problem, text, where)
  }

  function found(): string {
    if (at >= end) return 'the text ends here'
    const character = text.charAt(at)
    // Show punctuation only, because anything else may be part of a value.
    return '{}[]:,"'.includes(character) ? `found '${character}'` : 'found something else'
  }

  /** Moves to the next token and returns its first character; NaN at the end. */
  function next(): number {
    let code = text.charCodeAt(at)
    while (code === 32 || code === 10 || code === 13 || code === 9) code = text.charCodeAt(++at)
    return code
  }

  function readValue(depth: number): Json {
    const code = next()
    if (++values > maxValues) throw new TooManyValues(`more than ${maxValues} values`, 1, at + 1)
    if (code === 34) return readString()
    if (code === 123) return readObject(depth + 1)
    if (code === 91) return readArray(depth + 1)
    if (code === 45 || (code >= 48 && code <= 57)) return readNumber()
    if (code === 116 && text.startsWith('true', at)) return skip(4, true)
    if (code === 102 && text.startsWith('false', at)) return skip(5, false)
    if (code === 110 && text.startsWith('null', at)) return skip(4, null)
    return fail(`expected a JSON value, ${found()}`, at)
  }

  /** Counts the characters of a string or number. */
  function countText(length: number): void {
    textLeft -= length
    if (textLeft < 0) throw new TooManyValues(`more than ${maxText} characters in strings, keys and numbers`, 1, at + 1)
  }

  function skip<T>(length: number, value: T): T {
    at += length
    return value
  }

  function readObject(depth: number): Json {
    if (depth > maxDepth) fail(`nested deeper than ${maxDepth}`, at)
    at++
    const object: Draft = emptyMap()
    const keys: string[] = []
    if (next() === 125) return skip(1, object)
    for (;;) {
      if (next() !== 34) fail(`expected a key in double quotes, ${found()}`, at)
      const key = readString()
      path[depth - 1] = key
      if (next() !== 58) fail(`expected ':' after a key, ${found()}`, at)
      at++
      if (object[key] !== undefined) noteDuplicate(depth)
      else if (keys.push(key) > SMALL_MAP && ++largeKeys > maxKeys)
        throw new TooManyValues(`more than ${maxKeys} keys in large maps`, 1, at + 1)
      object[key] = readValue(depth)
      const code = next()
      at++
      if (code === 44) continue
      if (code === 125) {
        rememberKeys(object, keys)
        return object
      }
      at--
      fail(`expected ',' or '}' after a member, ${found()}`, at)
    }
  }

  function readArray(depth: number): Json {
    if (depth > maxDepth) fail(`nested deeper than ${maxDepth}`, at)
    at++
    const array: Json[] = []
    if (next() === 93) return skip(1, array)
    for (;;) {
      path[depth - 1] = array.length
      array.push(readValue(depth))
      const code = next()
      at++
      if (code === 44) continue
      if (code === 93) return array
      at--
      fail(`expected ',' or ']' after an element, ${found()}`, at)
    }
  }

  function readString(): string {
    const start = ++at
    for (;;) {
      const code = text.charCodeAt(at)
      if (code === 34) {
        countText(at - start)
        return ownText(text.slice(start, at++))
      }
      if (code === 92) return readEscapes(start)
      if (!(code >= 32)) failInString()
      at++
      if (at - start === long) skipPlain()
    }
  }

  function failInString(): never {
    if (at >= end) fail('expected a closing quote, the text ends here', at)
    fail('a control character in a string must be escaped', at)
  }

  /** A pattern finds the end of long strings several times faster than the loop, but not of short ones. */
  function skipPlain(): void {
    plain.lastIndex = at
    plain.test(text)
    at = plain.lastIndex
  }

  /** JSON.parse validates and decodes escapes several times faster than a loop. The loop finds the position of an error. */
  function readEscapes(start: number): string {
    const close = closingQuote(start + textLeft)
    countText(close - start)
    try {
      const value = JSON.parse(text.slice(start - 1, close + 1)) as string
      at = close + 1
      return value
    } catch {
      // The position inside of a very long string is not worth the time.
      if (close - start > VERY_LONG) fail('this string is not closed, or has an invalid escape', start - 1)
      return failInEscapes()
    }
  }

  /** The position of the first quote that is not escaped, or one beyond the text or `last`. */
  function closingQuote(last: number): number {
    const stop = Math.min(end, last + 1)
    let position = at
    let code = text.charCodeAt(position)
    while (code !== 34 && position < stop) {
      position += code === 92 ? 2 : 1
      code = text.charCodeAt(position)
    }
    return position
  }

  function failInEscapes(): never {
    for (;;) {
      const code = text.charCodeAt(at)
      if (code === 92) skipEscape()
      else if (code >= 32 && code !== 34) at++
      else failInString()
    }
  }

  function skipEscape(): void {
    const letter = text.charCodeAt(at + 1)
    if (letter === 117) {
      for (let digit = at + 2; digit < at + 6; digit++)
        if (!isHex(text.charCodeAt(digit))) fail('expected four hexadecimal digits after \\u', at)
      at += 6
    } else if (isEscapable(letter)) at += 2
    else fail('a backslash must be followed by one of "\\/bfnrt or u', at)
  }

  function digits(): number {
    const start = at
    let code = text.charCodeAt(at)
    while (code >= 48 && code <= 57) code = text.charCodeAt(++at)
    return at - start
  }

  function readNumber(): number {
    const start = at
    if (text.charCodeAt(at) === 45) at++
    const leadingZero = text.charCodeAt(at) === 48
    const length = digits()
    if (length === 0) fail(`expected a digit after '-', ${found()}`, at)
    if (leadingZero && length > 1) fail('a number may not begin with a zero', start)
    const isInteger = !readFraction()
    countText(at - start)
    const value = Number(text.slice(start, at))
    // 2^53 + 1 would be rounded to 2^53 and pass, so compare the digits.
    const rounded = isInteger && length === 16 && text.slice(at - 16, at) > String(TWO_TO_53)
    const problem = numberProblem(rounded ? 2 * TWO_TO_53 : value, isInteger)
    if (problem !== undefined) fail(problem, start)
    return value === 0 ? 0 : value
  }

  function readFraction(): boolean {
    const start = at
    if (text.charCodeAt(at) === 46) {
      at++
      if (digits() === 0) fail(`expected a digit after '.', ${found()}`, at)
    }
    if ((text.charCodeAt(at) | 32) === 101) {
      at++
      const sign = text.charCodeAt(at)
      if (sign === 43 || sign === 45) at++
      if (digits() === 0) fail(`expected a digit in the exponent, ${found()}`, at)
    }
    return at > start
  }

  function noteDuplicate(depth: number): void {
    if (duplicates.size >= MAX_DUPLICATES || duplicateText > MAX_DUPLICATE_TEXT) return
    let name = ''
    for (const step of path.slice(0, depth)) {
      name += typeof step === 'number' ? `[${step}]` : name === '' ? step : `.${step}`
      if (name.length > MAX_DUPLICATE_TEXT) return
    }
    duplicates.add(name)
    duplicateText += name.length
  }

  const value = readValue(0)
  next()
  if (at < end) fail(`expected the end of the text, ${found()}`, at)
  return { value, duplicates: [...duplicates] }
}

const isHex = (code: number) => (code >= 48 && code <= 57) || (code >= 65 && code <= 70) || (code >= 97 && code <= 102)
const isEscapable = (code: number) => '"\\/bfnrt'.includes(String.fromCharCode(code))

/** An error with its line and column, both starting at 1. */
export function decodeErrorAt(problem: string, text: string, where: number): DecodeError {
  let line = 1
  let lineStart = 0
  for (let at = text.indexOf('\n'); at !== -1 && at < where; at = text.indexOf('\n', at + 1)) {
    line++
    lineStart = at + 1
  }
  return new DecodeError(problem, line, where - lineStart + 1)
}
