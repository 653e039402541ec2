// Reads a configuration file within limits, and finds the line and column of values and keys.

import {
  isAlias,
  isMap,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
  type Scalar,
} from 'yaml'
import { decodeText } from './codec.ts'
import { DecodeError } from './json-reader.ts'
import { isObject, type JsonObject } from './object.ts'
import { readYaml, type YamlReading } from './yaml-reader.ts'

export type At = readonly (string | number)[]
export type Position = { readonly line: number; readonly column: number }
export type Problem = Position & { readonly message: string }

/** Larger than any file written by hand, and it limits the parsing time. */
const maxBytes = 1024 * 1024

export type ConfigText = {
  readonly value: JsonObject
  /** The position of a value, or of its closest ancestor. `offset`: an index into a string value. */
  positionOf(at: At, offset?: number): Position
  /** The position of a key. */
  positionOfKey(at: At): Position
}

/** Throws ConfigTextError. */
export function readConfigText(bytes: Uint8Array): ConfigText {
  if (bytes.length > maxBytes) refuse(1, 1, `more than ${maxBytes} bytes`)
  const { value, repeated } = read(bytes)
  const text = new TextDecoder().decode(bytes)
  let found: { readonly counter: LineCounter; readonly root: unknown; readonly resolve: Resolve } | undefined
  /** Parsed lazily, because only errors need positions. Reading the file has checked the limits. */
  const document = () => {
    if (found) return found
    const counter = new LineCounter()
    const parsed = parseDocument(text, { lineCounter: counter, uniqueKeys: false, logLevel: 'silent', version: '1.2' })
    const resolve: Resolve = node => (isAlias(node) ? node.resolve(parsed) : node)
    found = { counter, root: parsed.contents, resolve }
    return found
  }
  const positionAt = (position: number): Position => {
    const { line, col } = document().counter.linePos(position)
    return { line: Math.max(1, line), column: Math.max(1, col) }
  }
  if (repeated.length) throw new ConfigTextError(repeated)
  if (value !== null && !isObject(value)) refuse(1, 1, 'expected a map of keys and values')
  return {
    value: (value ?? {}) as JsonObject,
    positionOf: (at, offset) => {
      const { root, resolve } = document()
      const { node, depth } = walk(root, at, resolve)
      const isIn = offset !== undefined && depth === at.length && isScalar(node)
      const offsetInNode = isIn ? offsetIn(node, text, offset) : undefined
      return positionAt(offsetInNode ?? startOf(node))
    },
    positionOfKey: at => {
      const { root, resolve } = document()
      const { node } = walk(root, at.slice(0, -1), resolve)
      return positionAt(startOf(pairOf(node, at.at(-1))?.key ?? node))
    },
  }
}

/** The reasons why a file is unreadable. */
export class ConfigTextError extends Error {
  readonly problems: readonly Problem[]
  constructor(problems: readonly Problem[]) {
    super(problems.map(({ message }) => message).join('\n'))
    this.problems = problems
  }
}

function refuse(line: number, column: number, message: string): never {
  throw new ConfigTextError([{ line, column, message }])
}

function read(bytes: Uint8Array): YamlReading {
  try {
    return readYaml(decodeText(bytes))
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error
    return refuse(error.line, error.column, error.problem)
  }
}

type Resolve = (node: unknown) => unknown

function walk(root: unknown, at: At, resolve: Resolve): { readonly node: unknown; readonly depth: number } {
  let node = root
  for (const [depth, step] of at.entries()) {
    const offsetInNode = resolve(node)
    const next = isSeq(offsetInNode) ? offsetInNode.items[step as number] : pairOf(offsetInNode, step)?.value
    if (next === undefined || next === null) return { node: pairOf(offsetInNode, step)?.key ?? node, depth }
    node = next
  }
  return { node, depth: at.length }
}

/** The last of several duplicate keys wins. */
function pairOf(node: unknown, key: unknown): Pair | undefined {
  if (!isMap(node)) return undefined
  return node.items.findLast(item => isPair(item) && isScalar(item.key) && keyText(item.key) === String(key))
}

const keyText = (key: Scalar) => key.source ?? String(key.value)
const startOf = (node: unknown): number => (node as Node | null)?.range?.[0] ?? 0

/** Converts an offset in the value to an offset in the file; undefined if folding makes it ambiguous. */
function offsetIn(node: Scalar, text: string, offset: number): number | undefined {
  const [start, end] = node.range ?? [0, 0]
  const source = text.slice(start, end)
  if (node.type === 'BLOCK_LITERAL' || node.type === 'BLOCK_FOLDED') return inBlock(node, source, start, offset)
  if (source.includes('\n')) return undefined
  if (node.type === 'QUOTE_DOUBLE') return start + 1 + passed(source.slice(1), doubleQuoted, offset)
  if (node.type === 'QUOTE_SINGLE') return start + 1 + passed(source.slice(1), /''|[\s\S]/y, offset)
  return start + offset
}

const doubleQuoted = /\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8}|\\[\s\S]|[\s\S]/y

/** The number of source characters for this many characters of the value. */
function passed(source: string, one: RegExp, count: number): number {
  const unit = new RegExp(one)
  let at = 0
  for (let n = 0; n < count && unit.test(source); n++) at = unit.lastIndex
  return at
}

function inBlock(node: Scalar, source: string, start: number, offset: number): number | undefined {
  const value = String(node.value)
  const lines = source.split('\n')
  const first = lines.findIndex((line, index) => index > 0 && line.trim() !== '')
  if (first === -1) return undefined
  const indent = (lines[first] as string).search(/\S/)
  const before = value.slice(0, offset).split('\n')
  // Folded text has other line breaks than the file, unless it has a single line.
  if (node.type === 'BLOCK_FOLDED' && lines.slice(first).filter(line => line.trim()).length > 1) return undefined
  const skipped = lines.slice(0, before.length).reduce((sum, line) => sum + line.length + 1, 0)
  return start + skipped + indent + (before.at(-1) as string).length
}
