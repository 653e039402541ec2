// Reads and writes secrets as dotenv, JSON, YAML and shell exports, byte for byte.

import { decode, writeYaml } from '../../api/codec.ts'
import { DecodeError } from '../../api/json-reader.ts'
import { isObject, type Json } from '../../api/object.ts'
import { decodeYamlFile } from '../../api/yaml-codec.ts'
import { UsageError } from '../../host/command.ts'
import { readDotenv } from './read-dotenv.ts'
import { readable, textOf } from './secret.ts'
import { changesStart } from './startup-variables.ts'

export const forms = ['dotenv', 'json', 'yaml', 'shell'] as const
export type Form = (typeof forms)[number]

export function formOf(asked: string | undefined, file: string): Form {
  const known = forms.find(form => form === asked)
  if (known) return known
  if (file.endsWith('.json')) return 'json'
  if (file.endsWith('.sh')) return 'shell'
  return /\.ya?ml$/.test(file) ? 'yaml' : 'dotenv'
}

/** Throws UsageError with every key that the format cannot represent. */
export function writeForm(form: Form, data: ReadonlyMap<string, Uint8Array>): string {
  const sorted = [...data].toSorted(([a], [b]) => (a < b ? -1 : 1))
  if (form === 'json' || form === 'yaml') {
    const value = Object.fromEntries(sorted.map(([key, bytes]) => [key, readable(bytes)]))
    return form === 'yaml' ? writeYaml(value) : `${JSON.stringify(value, undefined, 2)}\n`
  }
  const problems: string[] = []
  const lines = sorted.map(([key, bytes]) => {
    const text = textOf(bytes)
    if (text === undefined || text.includes('\0'))
      problems.push(`${key} is not text (${bytes.length} bytes): use json or yaml`)
    if (form === 'shell' && !/^[A-Za-z_]\w*$/.test(key))
      problems.push(`${key} is not a valid shell variable name: use json, yaml or dotenv`)
    else if (form === 'shell' && changesStart(key))
      problems.push(
        `${key} changes how programs start, so the author of the secret could run code in your shell: use json, yaml or dotenv, or set it by name from platform get secret`,
      )
    return form === 'shell' ? `export ${key}=${shellQuoted(text ?? '')}\n` : `${key}=${dotenvQuoted(text ?? '')}\n`
  })
  if (problems.length) throw new UsageError(problems)
  return lines.join('')
}

const shellQuoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

const escapes: { readonly [character: string]: string } = {
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '"': '\\"',
  '\\': '\\\\',
  $: '\\$',
  '`': '\\`',
}

const dotenvQuoted = (text: string) =>
  /^[\w./:@%+,=-]*$/.test(text) ? text : `"${text.replace(/[\n\r\t"\\$`]/g, one => escapes[one] ?? one)}"`

/** Throws UsageError that names the key or line, never the value. */
export function readForm(form: Form, bytes: Uint8Array, file: string): Map<string, Uint8Array> {
  if (form === 'dotenv' || form === 'shell') {
    const text = textOf(bytes)
    if (text === undefined) throw new UsageError([`${file} is not UTF-8 text`])
    return readDotenv(text, file, form === 'shell')
  }
  const problems: string[] = []
  const value = decoded(form, bytes, file)
  if (!isObject(value)) throw new UsageError([`${file}: expected a map of keys and values`])
  const entries = Object.entries(value).map(([key, one]): [string, Uint8Array] => {
    if (typeof one === 'string') return [key, Buffer.from(one)]
    const base64 = isObject(one) && Object.keys(one).length === 1 ? one['base64'] : undefined
    if (typeof base64 === 'string' && isBase64(base64)) return [key, Buffer.from(base64, 'base64')]
    if (typeof one === 'number' || typeof one === 'boolean')
      problems.push(`${file}: ${key} is a ${typeof one}, but values must be text: quote it`)
    else problems.push(`${file}: ${key} must be text, or {base64: …} in standard base64 with padding`)
    return [key, Buffer.alloc(0)]
  })
  if (problems.length) throw new UsageError(problems)
  return new Map(entries)
}

const isBase64 = (text: string) => text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text)

function decoded(form: 'json' | 'yaml', bytes: Uint8Array, file: string): Json {
  try {
    const { value, duplicates } = form === 'yaml' ? decodeYamlFile(bytes) : decode(bytes)
    if (duplicates.length) throw new UsageError(duplicates.map(one => `${file}: ${one}`))
    return value
  } catch (error) {
    if (error instanceof DecodeError) throw new UsageError([`${file}: ${error.message}`])
    throw error
  }
}
