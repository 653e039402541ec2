// Parses dotenv files and shell exports: quotes over several lines, escapes and comments.

import { UsageError } from '../../host/command.ts'

const escapes: { readonly [character: string]: string } = { n: '\n', r: '\r', t: '\t' }

/** Limits the output for a file that is not a dotenv file at all. */
const maxProblems = 20

/** Throws UsageError with every malformed line, without values. With `isShell`, rejects values that a shell would expand. */
export function readDotenv(text: string, file: string, isShell = false): Map<string, Uint8Array> {
  const entries = new Map<string, Uint8Array>()
  const problems: string[] = []
  const source = text.replace(/^\uFEFF/, '')
  let at = 0
  /** Whether a shell would expand or split the value. */
  let isExpanded = false
  const lineOf = (offset: number) => source.slice(0, offset).split('\n').length
  const restOfLine = () => {
    const end = source.indexOf('\n', at)
    const rest = source.slice(at, end === -1 ? source.length : end)
    at += rest.length + 1
    return rest
  }
  while (at < source.length && problems.length < maxProblems) {
    const start = at
    const name = /^[ \t]*(?:export[ \t]+)?([-.\w]+)[ \t]*=[ \t]*/.exec(source.slice(at, at + 600))
    if (!name) {
      const line = restOfLine()
      if (line.trim() && !line.trim().startsWith('#')) problems.push(`${file}:${lineOf(start)}: expected NAME=value`)
      continue
    }
    const [before, key = ''] = name
    at += before.length
    isExpanded = false
    const value = isQuote(source[at]) ? quoted() : plain(restOfLine())
    if (value === undefined) {
      problems.push(`${file}:${lineOf(start)}: unclosed quotes of ${key}, or text after them`)
      restOfLine()
    } else if (isExpanded && isShell)
      problems.push(`${file}:${lineOf(start)}: a shell would expand the value of ${key}: put it in single quotes`)
    else if (entries.has(key)) problems.push(`${file}:${lineOf(start)}: duplicate key ${key}`)
    else entries.set(key, Buffer.from(value))
  }
  if (problems.length) throw new UsageError(problems)
  return entries

  /** Joins adjacent quoted pieces, like a shell. Returns undefined if a quote is not closed. */
  function quoted(): string | undefined {
    const before = at
    let value = ''
    while (isQuote(source[at]) || source.startsWith("\\'", at)) {
      const piece = source[at] === "'" ? literal() : source[at] === '"' ? escaped() : shellQuote()
      if (piece === undefined) {
        at = before
        return undefined
      }
      value += piece
    }
    const rest = restOfLine().trim()
    return rest && !rest.startsWith('#') ? undefined : value
  }

  function plain(line: string): string {
    const value = line.replace(/(^|\s)#[\s\S]*$/, '').trim()
    if (/[\s$`;&|<>()\\'"*?[~]/.test(value)) isExpanded = true
    return value
  }

  function literal(): string | undefined {
    const end = source.indexOf("'", at + 1)
    if (end === -1) return undefined
    const piece = source.slice(at + 1, end)
    at = end + 1
    return piece
  }

  function escaped(): string | undefined {
    const pieces: string[] = []
    for (let place = at + 1; place < source.length; ) {
      if (source[place] === '"') {
        at = place + 1
        return pieces.join('')
      }
      const next = source[place + 1] ?? ''
      if (source[place] === '`' || (source[place] === '$' && /[\w({@*#?$!-]/.test(next))) isExpanded = true
      if (source[place] === '\\' && !/["$`\\]/.test(next)) isExpanded = true // a shell keeps the backslash, or joins two lines
      pieces.push(source[place] === '\\' ? (escapes[next] ?? next) : (source[place] ?? ''))
      place += source[place] === '\\' ? 2 : 1
    }
    return undefined
  }

  function shellQuote(): string {
    at += 2
    return "'"
  }
}

const isQuote = (character: string | undefined) => character === "'" || character === '"'
