// Reads objects from YAML and JSON files that may hold several.

import { didYouMean } from '../api/did-you-mean.ts'
import { DecodeError } from '../api/json-reader.ts'
import type { Kind } from '../api/kind.ts'
import { isObject, type Json, type JsonObject } from '../api/object.ts'
import { decodeYamlFile } from '../api/yaml-codec.ts'
import { type Io, UsageError } from '../host/command.ts'
import { quoted } from '../host/sanitize.ts'
import { kinds } from '../kinds/index.ts'

type Parsed = { readonly kind: Kind; readonly object: JsonObject }
/** `at` is the position in the file; absent if the file has only one object. */
export type Found = Parsed & { readonly file: string; readonly at?: string }
/** Objects are returned even if others in the same file failed. */
type Read = { readonly found: readonly Found[]; readonly failures: readonly unknown[] }

export async function readAllObjects(io: Io, files: readonly string[]): Promise<Read> {
  const read = await Promise.all(
    files.map(file => readObjects(io, file).catch((error: unknown) => ({ found: [], failures: [error] }))),
  )
  return { found: read.flatMap(one => one.found), failures: read.flatMap(one => one.failures) }
}

/** Every problem names its document or item. */
async function readObjects(io: Io, file: string): Promise<Read> {
  const text = new TextDecoder().decode(await io.readFile(file))
  const parts = text.split(/^---(?:[ \t].*)?$/m).filter(part => part.replace(/^\s*#.*$/gm, '').trim())
  if (!parts.length) throw new UsageError([`${file} contains no objects`])
  const read = parts.flatMap((part, at) =>
    objectsIn(part, parts.length > 1 ? `${file}: document ${at + 1} of ${parts.length}` : file),
  )
  const found = read.flatMap((one, at) => {
    if ('problems' in one) return []
    return { ...one, file, ...(read.length > 1 ? { at: `${at + 1} of ${read.length}` } : {}) }
  })
  const problems = read.flatMap(one => ('problems' in one ? one.problems : []))
  return { found, failures: problems.length ? [new UsageError(problems)] : [] }
}

type One = Parsed | { readonly problems: readonly string[] }

function objectsIn(text: string, where: string): readonly One[] {
  try {
    const { value, duplicates } = decodeYamlFile(new TextEncoder().encode(text))
    if (duplicates.length) return [{ problems: duplicates.map(one => `${where}: ${one}`) }]
    if (!isObject(value) || value['kind'] !== 'List' || !Array.isArray(value['items'])) return [objectOf(value, where)]
    const { items } = value
    return items.map((item, at) => objectOf(item, `${where}: item ${at + 1} of ${items.length}`))
  } catch (error) {
    if (error instanceof DecodeError) return [{ problems: [`${where}: ${error.message}`] }]
    throw error
  }
}

function objectOf(item: Json, where: string): One {
  if (!isObject(item)) return { problems: [`${where}: expected an object with apiVersion and kind`] }
  const kind = kinds.find(one => one.served && one.kind === item['kind'] && one.apiVersion === item['apiVersion'])
  if (kind?.verbs.includes('create')) return { kind, object: item }
  return { problems: [`${where}: ${kind ? `${kind.plural} cannot be created` : unknown(item)}`] }
}

function unknown({ kind, apiVersion }: JsonObject): string {
  if (!kind) return apiVersion ? 'kind is missing' : 'apiVersion and kind are missing'
  const served = kinds.filter(one => one.served)
  const same = served.find(one => one.kind === kind)
  const given = apiVersion ? `apiVersion ${quoted(String(apiVersion))}` : 'apiVersion is missing'
  if (same) return `${given}: ${same.kind} has apiVersion ${same.apiVersion}`
  const meant = didYouMean(
    String(kind),
    served.map(one => one.kind),
  )
  const none = `kind ${quoted(String(kind))}${apiVersion ? ` of ${given}` : ''} is unknown${meant}`
  return apiVersion ? none : `${given}, and ${none}`
}
