// Encodes JSON values as canonical JSON, and as YAML like kubectl.
// A separate file, so that writers need not load a YAML reader.

import { isObject, type Json, type JsonObject } from './object.ts'

/**
 * JSON with sorted keys, so that equal values give equal text. Omits undefined members, and the members in `without` at
 * the top level.
 */
export function canonical(value: Json, without?: ReadonlySet<string>): string {
  if (typeof value === 'string') return quote(value)
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  let text = ''
  if (!isObject(value)) {
    for (const element of value) text += text === '' ? canonical(element) : `,${canonical(element)}`
    return `[${text}]`
  }
  for (const key of sortedKeys(value)) {
    const member = value[key]
    if (member === undefined || without?.has(key)) continue
    text += text === '' ? quoteKey(key) + canonical(member) : `,${quoteKey(key)}${canonical(member)}`
  }
  return `{${text}}`
}

/** Stored objects are sorted already, and a check is much cheaper than sorting. */
function sortedKeys(object: JsonObject): string[] {
  const keys = Object.keys(object)
  for (let at = 1; at < keys.length; at++) if ((keys[at - 1] as string) > (keys[at] as string)) return keys.sort()
  return keys
}

// Caches quoted keys, because all objects share a few names.
const quotedKeys = new Map<string, string>()

function quoteKey(key: string): string {
  const known = quotedKeys.get(key)
  if (known !== undefined) return known
  const quoted = `${JSON.stringify(key)}:`
  if (quotedKeys.size < 1_000 && key.length < 64) quotedKeys.set(key, quoted)
  return quoted
}

function quote(text: string): string {
  // This loop is faster than JSON.stringify for short plain strings.
  if (text.length >= 64) return JSON.stringify(text)
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code < 32 || code > 126 || code === 34 || code === 92) return JSON.stringify(text)
  }
  return `"${text}"`
}

/** Block style like kubectl. Keeps the order of keys. */
export function writeYaml(value: Json): string {
  if (isBlock(value)) return blockLines(value, '')
  return `${typeof value === 'string' ? yamlString(value) : inline(value)}\n`
}

function isBlock(value: Json): value is readonly Json[] | JsonObject {
  if (typeof value !== 'object' || value === null) return false
  return isObject(value) ? Object.values(value).some(member => member !== undefined) : value.length > 0
}

function inline(value: Json): string {
  if (typeof value === 'string') return yamlString(value)
  if (typeof value === 'object' && value !== null) return isObject(value) ? '{}' : '[]'
  return JSON.stringify(value) ?? 'null'
}

function blockLines(value: readonly Json[] | JsonObject, indent: string): string {
  if (!isObject(value)) {
    // The content after the dash is a block whose first line starts two columns later.
    return value.map(element => `${indent}- ${afterDash(element, `${indent}  `)}`).join('')
  }
  let text = ''
  for (const key of Object.keys(value)) {
    const member = value[key]
    if (member === undefined) continue
    const name = yamlString(key)
    // Readers search only 1024 characters for the colon of an implicit key.
    text += name.length > 128 ? `${indent}? ${name}\n${indent}:` : `${indent}${name}:`
    text += afterColon(member, indent)
  }
  return text
}

function afterDash(value: Json, indent: string): string {
  if (isBlock(value)) return blockLines(value, indent).slice(indent.length)
  return typeof value === 'string' ? `${yamlText(value, indent)}\n` : `${inline(value)}\n`
}

function afterColon(value: Json, indent: string): string {
  // kubectl does not indent lists below their key.
  if (isBlock(value)) return `\n${blockLines(value, isObject(value) ? `${indent}  ` : indent)}`
  return typeof value === 'string' ? ` ${yamlText(value, `${indent}  `)}\n` : ` ${inline(value)}\n`
}

/** Multiple lines as a literal block, if that keeps every character. */
function yamlText(value: string, indent: string): string {
  if (!value.includes('\n') || UNPRINTABLE.test(value) || /^\s|[ \t]$/m.test(value)) return yamlString(value)
  const chomping = value.endsWith('\n\n') ? '+' : value.endsWith('\n') ? '' : '-'
  const lines = value.endsWith('\n') ? value.slice(0, -1) : value
  return `|${chomping}\n${lines.replace(/^(?=.)/gm, indent)}`
}

const UNPRINTABLE = /[^\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\u{10000}-\u{10ffff}]/u
const ESCAPED = /[\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff]/g

// Words that a reader of YAML 1.1 or 1.2 may not read as a string.
const WORD = /^(?:y|n|yes|no|on|off|true|false|null|~|<<|=|[-+]?\.inf|\.nan)?$/i
const NUMBER =
  /^[-+]?(?:0b[01_]+|0o[0-7_]+|0x[\da-f_]+|\d[\d_]*(?::[0-5]?\d)*(?:\.[\d_]*)?(?:e[-+]?\d+)?|\.[\d_]*(?:e[-+]?\d+)?|e[-+]?\d+)$/i
const TIME = /^\d{4}-\d\d?-\d\d?(?:$|[Tt \t])/
// Characters that would start or end another token without quotes.
const SPECIAL = /^[^\p{L}\p{N}_./\\$()+^;<-]|^-(?:$|[ -])|^\.\.\.|: |:$| #| $/u

function yamlString(value: string): string {
  if (UNPRINTABLE.test(value) || value.includes('\n')) return doubleQuoted(value)
  const mayBeNumber = value.length > 64 ? /^[-+.\d]/.test(value) : NUMBER.test(value) || TIME.test(value)
  if (mayBeNumber || WORD.test(value)) return doubleQuoted(value)
  return SPECIAL.test(value) ? `'${value.replaceAll("'", "''")}'` : value
}

function doubleQuoted(value: string): string {
  return JSON.stringify(value).replace(ESCAPED, character => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}
