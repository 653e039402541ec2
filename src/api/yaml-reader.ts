// Reads one YAML 1.2 document as plain JSON values, with limits on depth, aliases and time (D4).
import {
  type Alias,
  Composer,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  Parser,
  type Scalar,
  type YAMLError,
  type YAMLMap,
} from 'yaml'
import {
  DecodeError,
  decodeErrorAt,
  MAX_DEPTH,
  MAX_DUPLICATES,
  numberProblem,
  type Reading,
  type ReadOptions,
  readJson,
  SMALL_MAP,
  TooManyValues,
} from './json-reader.ts'
import { type Draft, emptyMap, type Json } from './object.ts'
import { ownText } from './own-text.ts'

/** The maximum size of all expanded aliases in characters, equal to the maximum body (D7). */
const MAX_EXPANDED = 3 * 1024 * 1024
const MAX_DOCUMENTS = 16
// The YAML library needs up to 10 µs per token. Without limits, 3 MiB of short lines would block the server for half a
// minute. With these, the worst document takes less than 50 ms (D36, D72).
const MAX_TOKENS = 10_000
const MAX_LINES = 10_000
/** The library reads double quotes and plain text character by character. */
const MAX_CHARACTERS = 512 * 1024
/** For files of operators and of the command line: nobody else waits while they are read. */
export const MAX_FILE_CHARACTERS = 3 * 1024 * 1024
/** Longer integers are beyond any number of JSON, and the time to convert one is quadratic. */
const MAX_DIGITS = 400
const INTEGER = /^[-+]?(?:0x[\da-fA-F]+|0o[0-7]+|\d+)$/
const MAX_DIRECTIVES = 16
const MAX_SHOWN_KEY = 253
const CORE_TAG = /^tag:yaml\.org,2002:(?:str|int|float|bool|null|map|seq)$/

// The messages of the library may quote the text, which may be a secret. These only contain the expectation.
const PROBLEMS: { readonly [code: string]: string } = {
  BAD_ALIAS: 'an alias must refer to an anchor before it',
  BAD_DQ_ESCAPE: 'this escape sequence is not known in double quotes',
  BAD_INDENT: 'the indentation does not match the lines above',
  BAD_SCALAR_START: 'a plain value cannot begin with this character: put it in quotes',
  BLOCK_AS_IMPLICIT_KEY: "expected a value on a line of its own: two ':' on one line, or quotes are missing",
  KEY_OVER_1024_CHARS: "a key without '?' may not be longer than 1024 characters",
  MISSING_CHAR: 'a closing quote or bracket, a comma, a colon or a space is missing',
  MULTILINE_IMPLICIT_KEY: "expected ':' after the key, on the same line",
  TAB_AS_INDENT: 'tabs may not be used for indentation',
}

const OPEN: { readonly [close: string]: string } = { ']': '[', '}': '{' }

function problemOf({ code, message }: YAMLError): string {
  const close = /^Flow .* end with a ([\]}])$/.exec(message)?.[1]
  if (close === undefined) return PROBLEMS[code] ?? 'this is not valid YAML'
  return `expected '${close}': the '${OPEN[close]}' above is not closed, or what is inside it is not indented`
}

type Anchor = { value: Json; node: unknown; measured?: Measured }

/** Lines and columns start at 1. */
export type Repeated = { readonly line: number; readonly column: number; readonly message: string }
export type YamlReading = Reading & {
  /** Duplicate keys, each with its position. */
  readonly repeated: readonly Repeated[]
}

export type YamlOptions = ReadOptions & { readonly maxCharacters?: number }

/** Throws DecodeError. `duplicates` has the messages of Kubernetes. The last duplicate key wins. */
export function readYaml(text: string, options: YamlOptions = {}): YamlReading {
  const { maxCharacters = MAX_CHARACTERS } = options
  const { maxDepth = MAX_DEPTH, maxValues = Number.POSITIVE_INFINITY, maxKeys = Number.POSITIVE_INFINITY } = options
  const json = tryJson(text, options)
  if (json !== undefined) return { ...json, repeated: [] }
  if (text.length > maxCharacters)
    throw new DecodeError(`more than ${maxCharacters} characters of YAML: send JSON instead`, 1, 1)
  if (hasLines(text, MAX_LINES)) throw new DecodeError(`more than ${MAX_LINES} lines: send JSON instead`, MAX_LINES, 1)
  const node = composeOne(text, maxDepth)
  const positionOf = countLines(text)
  const repeated: Repeated[] = []
  const anchors = new Map<string, Anchor>()
  let expanded = 0
  // The limit of tokens keeps the document itself below both. Only aliases exceed them.
  let values = 0
  let keys = 0

  function fail(problem: string, node: unknown): never {
    throw decodeErrorAt(problem, text, startOf(node))
  }

  function convert(node: unknown, depth: number): Json {
    if (isAlias(node)) return resolve(node, depth)
    const anchor = (node as { anchor?: string } | null)?.anchor
    if (anchor === undefined) return build(node, depth)
    // Registered before its value is known, to detect an alias inside its own anchor.
    anchors.set(anchor, { value: null, node })
    const value = build(node, depth)
    if (anchors.get(anchor)?.node === node) anchors.set(anchor, { value, node: undefined })
    return value
  }

  function build(node: unknown, depth: number): Json {
    if (node === null || node === undefined) return null
    const tag = (node as { tag?: string }).tag
    if (tag !== undefined && !CORE_TAG.test(tag)) fail('custom tags are not supported', node)
    if (isScalar(node)) return scalar(node)
    if (depth >= maxDepth) fail(`nested deeper than ${maxDepth}`, node)
    if (isMap(node)) return map(node, depth + 1)
    if (isSeq(node)) return node.items.map(item => convert(item, depth + 1))
    return fail('expected a map, a list or a plain value', node)
  }

  function map(node: YAMLMap, depth: number): Json {
    const object: Draft = emptyMap()
    for (const pair of node.items) {
      const key = keyOf(pair.key, depth)
      if (object[key] !== undefined && repeated.length < MAX_DUPLICATES) {
        const message = `key ${JSON.stringify(key.slice(0, MAX_SHOWN_KEY))} already set in map`
        repeated.push({ ...positionOf(startOf(pair.key)), message })
      }
      object[key] = convert(pair.value, depth)
    }
    return object
  }

  /** Numbers and booleans become strings as written. */
  function keyOf(key: unknown, depth: number): string {
    const value = convert(key, depth)
    if (typeof value === 'object') return fail('expected a key that is a string', key)
    return isScalar(key) ? (key.source ?? String(value)) : String(value)
  }

  function scalar(node: Scalar): Json {
    const value = node.value
    if (typeof value === 'bigint' || typeof value === 'number') {
      const number = Number(value)
      const rounded = typeof value === 'bigint' && Number.isFinite(number) && BigInt(number) !== value
      const problem = numberProblem(rounded ? number * 2 : number, typeof value === 'bigint')
      if (problem !== undefined) fail(Number.isNaN(number) ? 'expected a number, found NaN' : problem, node)
      return number === 0 ? 0 : number
    }
    if (typeof value === 'string') return ownText(value)
    return typeof value === 'boolean' ? value : null
  }

  function resolve(alias: Alias, depth: number): Json {
    const anchor = anchors.get(alias.source)
    if (anchor === undefined) return fail(PROBLEMS['BAD_ALIAS'] ?? '', alias)
    if (anchor.node !== undefined) fail('an alias may not be inside its own anchor', alias)
    anchor.measured ??= measure(anchor.value, MAX_EXPANDED)
    expanded += anchor.measured.size
    if (expanded > MAX_EXPANDED) fail('the aliases expand to more than 3 MiB', alias)
    values += anchor.measured.values
    keys += anchor.measured.keys
    if (values > maxValues) throw new TooManyValues(`more than ${maxValues} values`, 1, 1)
    if (keys > maxKeys) throw new TooManyValues(`more than ${maxKeys} keys in large maps`, 1, 1)
    if (depth + anchor.measured.height > maxDepth) fail(`nested deeper than ${maxDepth}`, alias)
    return anchor.value
  }

  const value = convert(node, 0)
  const duplicates = new Set(repeated.map(({ line, message }) => `line ${line}: ${message}`))
  return { value, duplicates: [...duplicates], repeated }
}

/** JSON is a subset of YAML and much faster to read. The YAML reader handles everything unusual, with its messages. */
function tryJson(text: string, options: ReadOptions): Reading | undefined {
  if (!/^\s*[{[]/.test(text)) return undefined
  try {
    const reading = readJson(text, options)
    return reading.duplicates.length === 0 ? reading : undefined
  } catch (error) {
    if (error instanceof DecodeError && !(error instanceof TooManyValues)) return undefined
    throw error
  }
}

function composeOne(text: string, maxDepth: number): unknown {
  let content: unknown
  let documents = 0
  // The composer is recursive and the parser is not, so check the depth between the two, for each token.
  const composer = new Composer({
    version: '1.2',
    schema: 'core',
    merge: false,
    resolveKnownTags: false,
    uniqueKeys: false,
    intAsBigInt: true,
    prettyErrors: false,
    logLevel: 'silent',
  })
  for (const document of composer.compose(parseTokens(text, maxDepth), true, text.length)) {
    const error = document.errors[0]
    if (error !== undefined) throw decodeErrorAt(problemOf(error), text, error.pos[0])
    if (++documents > MAX_DOCUMENTS) throw decodeErrorAt('expected one document, found many', text, document.range[0])
    if (isEmpty(document.contents)) continue
    if (content !== undefined) throw decodeErrorAt('expected one document, found another', text, document.range[0])
    content = document.contents
  }
  return content
}

function isEmpty(contents: unknown): boolean {
  return contents === null || (isScalar(contents) && contents.value === null)
}

function* parseTokens(text: string, maxDepth: number) {
  const parser = new Parser()
  let tokens = 0
  let directives = 0
  for (const lexeme of new Lexer().lex(text)) {
    if (++tokens > MAX_TOKENS) {
      throw decodeErrorAt(`more than ${MAX_TOKENS} YAML tokens: send JSON instead`, text, parser.offset)
    }
    if (lexeme.length > MAX_DIGITS && INTEGER.test(lexeme))
      throw decodeErrorAt('this number is too large', text, parser.offset)
    for (const token of parser.next(lexeme)) {
      if (token.type === 'error') throw decodeErrorAt('this is not valid YAML', text, token.offset)
      if (token.type === 'directive' && ++directives > MAX_DIRECTIVES) {
        throw decodeErrorAt('expected a document, found many directives', text, token.offset)
      }
      yield token
    }
    // The stack also contains the document and the current scalar.
    if (parser.stack.length > maxDepth + 3) throw decodeErrorAt(`nested deeper than ${maxDepth}`, text, parser.offset)
  }
  yield* parser.end()
}

type Measured = { readonly size: number; readonly height: number; readonly values: number; readonly keys: number }

/** The size and depth of the output. Stops above the limit, because aliases multiply. */
function measure(value: Json, limit: number): Measured {
  if (typeof value === 'string') return { size: value.length + 3, height: 0, values: 1, keys: 0 }
  if (typeof value !== 'object' || value === null) return { size: 8, height: 0, values: 1, keys: 0 }
  let [size, height, values] = [2, 0, 1]
  const members = Object.entries(value)
  let keys = Array.isArray(value) ? 0 : Math.max(0, members.length - SMALL_MAP)
  for (const [key, member] of members) {
    const inner = measure(member as Json, limit - size)
    size += inner.size + key.length + 3
    height = Math.max(height, inner.height)
    values += inner.values
    keys += inner.keys
    if (size > limit) break
  }
  return { size, height: height + 1, values, keys }
}

function startOf(node: unknown): number {
  return (node as { range?: readonly number[] } | null)?.range?.[0] ?? 0
}

/** Whether there are this many line breaks. Stops after them. */
function hasLines(text: string, count: number): boolean {
  let at = -1
  for (let seen = 0; seen < count; seen++) {
    at = text.indexOf('\n', at + 1)
    if (at < 0) return false
  }
  return true
}

/** Lines and columns of offsets that mostly increase. */
function countLines(text: string): (offset: number) => Pick<Repeated, 'line' | 'column'> {
  let at = 0
  let line = 1
  return offset => {
    if (offset < at) [at, line] = [0, 1]
    for (let next = text.indexOf('\n', at); next >= 0 && next < offset; next = text.indexOf('\n', at)) {
      at = next + 1
      line++
    }
    return { line, column: offset - at + 1 }
  }
}
