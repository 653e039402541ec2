// Loads a vcluster.yaml: everything that is wrong with it at once, with line and column, or the file merged with the
// defaults (SPEC §2.10). The command line, the preview and the syncer call it.

import { amongSaid, didYouMean } from '../../api/did-you-mean.ts'
import { emptyMap, isObject, type Json, type JsonObject } from '../../api/object.ts'
import type { Schema } from '../../api/schema.ts'
import { type At, type ConfigText, ConfigTextError, type Problem, readConfigText } from '../../api/yaml-source.ts'
import { checkPatches } from '../patch/patch.ts'
import { checkRules, type Finding } from './rules.ts'
import { type Config, schema } from './schema.ts'

export type { Config, Problem }

export type LoadOptions = {
  /** Why patches may not be used; undefined: they may. */
  readonly whyNoPatches: string | undefined
}

export type Loaded = {
  /** With the defaults, and with what the rules switched off. */
  readonly config: Config
  /** Empty: it can be used. */
  readonly problems: readonly Problem[]
  readonly warnings: readonly Problem[]
}

export function loadConfig(bytes: Uint8Array, { whyNoPatches }: LoadOptions): Loaded {
  let text: ConfigText
  try {
    text = readConfigText(bytes)
  } catch (error) {
    if (!(error instanceof ConfigTextError)) throw error
    return { config: defaultConfig(), problems: error.problems, warnings: [] }
  }
  const shape: Finding[] = []
  const near: Finding[] = []
  // The rules read what the schema promises: a value of another type is told, and absent for them.
  const sound = checkShape(text.value, schema, [], { wrong: shape, near }) as JsonObject
  const ruled = checkRules(sound, merge(sound, schema) as Config, whyNoPatches)
  const patches = (['services', 'endpoints'] as const).flatMap(kind => patchFindings(text.value, kind))
  const placed = (findings: readonly Finding[]) => findings.map(one => place(text, one)).toSorted(inOrder)
  return {
    config: ruled.config,
    problems: placed([...shape, ...ruled.problems, ...patches]),
    warnings: placed([...near, ...ruled.warnings]),
  }
}

export const defaultConfig = (): Config => merge(undefined, schema) as Config

function patchFindings(value: JsonObject, kind: string): Finding[] {
  const at = ['sync', 'toHost', kind, 'patches']
  const raw = valueAt(value, at)
  if (!Array.isArray(raw)) return []
  return checkPatches(raw).map(({ at: inside, message, ...rest }) => {
    const [index, ...keys] = inside
    const name = [`patches${index === undefined ? '' : `[${index}]`}`, ...keys].join('.')
    return { ...rest, at: [...at, ...inside], message: `${name}: ${message}` }
  })
}

function valueAt(value: Json | undefined, at: At): Json | undefined {
  let inside = value
  for (const step of at) inside = isObject(inside) && Object.hasOwn(inside, step) ? inside[step as string] : undefined
  return inside
}

const place = (text: ConfigText, { at, offset, key, message }: Finding): Problem => ({
  ...(key ? text.placeOfKey(at) : text.placeOf(at, offset)),
  message,
})
const inOrder = (a: Problem, b: Problem) => a.line - b.line || a.column - b.column

const expected: { readonly [type: string]: string } = {
  object: 'a map of keys and values',
  array: 'a list',
  string: 'a text',
  boolean: 'true or false',
}

type Found = { readonly wrong: Finding[]; readonly near: Finding[] }

/**
 * The value with null in place of whatever has another type than the schema says. null counts as absent, as an empty
 * `key:` reads. What patches look like inside, they know themselves.
 */
function checkShape(value: Json, { type = '', ...rest }: Schema, at: At, found: Found): Json {
  if (value === null) return null
  if (typeOf(value) !== type) {
    found.wrong.push({ at, message: `${at.join('.')} must be ${expected[type]}, not ${nameOf(value)}` })
    return null
  }
  if (rest.enum && !rest.enum.includes(value as string)) {
    const hint = amongSaid(String(value), rest.enum)
    found.wrong.push({ at, message: `${at.join('.')} must be ${rest.enum.join(' or ')}${hint}` })
  }
  if (isObject(value)) return checkKeys(value, rest, at, found)
  const { items } = rest
  if (!Array.isArray(value) || !items || at.at(-1) === 'patches') return value
  return value.map((item, index) => {
    if (item === null) found.wrong.push({ at: [...at, index], message: `${at.join('.')}[${index}] is empty` })
    return checkShape(item, items, [...at, index], found)
  })
}

function checkKeys(value: JsonObject, rest: Schema, at: At, found: Found): JsonObject {
  const properties = rest.properties ?? {}
  const known = Object.keys(properties)
  const sound = emptyMap()
  for (const [key, member] of Object.entries(value)) {
    const inside = Object.hasOwn(properties, key) ? properties[key] : rest.additionalProperties
    sound[key] = isSchema(inside) ? checkShape(member, inside, [...at, key], found) : member
    if (isSchema(inside)) continue
    const name = [...at, key].join('.')
    const say = (message: string): Finding => ({ at: [...at, key], key: true, message })
    if (inside === false)
      found.wrong.push(say(`${name} is no known key${didYouMean(key, known)} (known: ${known.join(', ')})`))
    // Others may read it. What is nearly a key that is not there is more likely a mistake that switches nothing.
    const hint =
      inside === false
        ? ''
        : didYouMean(
            key,
            known.filter(one => !Object.hasOwn(value, one)),
          )
    if (hint) found.near.push(say(`${name} is not read here${hint}`))
  }
  return sound
}

const isSchema = (value: unknown): value is Schema => typeof value === 'object' && value !== null
const typeOf = (value: Json) => (Array.isArray(value) ? 'array' : typeof value)
const nameOf = (value: Json) => (typeof value === 'number' ? 'a number' : (expected[typeOf(value)] ?? 'nothing'))

/** What is there, with what is missing filled in; what the schema does not know stays as it is. */
function merge(value: Json | undefined, { properties, default: fallback }: Schema): Json {
  if (!properties) return value ?? (structuredClone(fallback) as Json) ?? null
  if (value !== undefined && value !== null && !isObject(value)) return value
  const merged = emptyMap()
  for (const [key, member] of Object.entries(value ?? {})) merged[key] = member as Json
  for (const [key, inside] of Object.entries(properties)) merged[key] = merge(merged[key], inside)
  return merged
}
