// Loads a vcluster.yaml with its defaults and reports all problems with line and column (SPEC §2.10).

import { didYouMean, didYouMeanOneOf } from '../../api/did-you-mean.ts'
import { emptyMap, isObject, type Json, type JsonObject } from '../../api/object.ts'
import type { Schema } from '../../api/schema.ts'
import { type At, type ConfigText, ConfigTextError, type Problem, readConfigText } from '../../api/yaml-source.ts'
import { checkPatches } from '../patch/patch.ts'
import { checkRules, type Finding, type LoadOptions } from './rules.ts'
import { type Config, schema } from './schema.ts'

export type { Config, Problem }

export type Loaded = {
  /** With defaults, and without features that the rules disable. */
  readonly config: Config
  /** Empty if the configuration is valid. */
  readonly problems: readonly Problem[]
  readonly warnings: readonly Problem[]
}

export function loadConfig(bytes: Uint8Array, options: LoadOptions): Loaded {
  let text: ConfigText
  try {
    text = readConfigText(bytes)
  } catch (error) {
    if (!(error instanceof ConfigTextError)) throw error
    return { config: defaultConfig(), problems: error.problems, warnings: [] }
  }
  const shape: Finding[] = []
  const near: Finding[] = []
  // The rules rely on the types of the schema, so values of the wrong type are reported and removed first.
  const typed = checkShape(text.value, schema, [], { wrong: shape, near }) as JsonObject
  const checked = checkRules(typed, merge(typed, schema) as Config, options)
  const patches = (['services', 'endpoints', 'endpointSlices'] as const).flatMap(kind =>
    patchFindings(text.value, kind),
  )
  const located = (findings: readonly Finding[]) => findings.map(one => locate(text, one)).toSorted(inOrder)
  return {
    config: checked.config,
    problems: located([...shape, ...checked.problems, ...patches]),
    warnings: located([...near, ...checked.warnings]),
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

const locate = (text: ConfigText, { at, offset, key, message }: Finding): Problem => ({
  ...(key ? text.positionOfKey(at) : text.positionOf(at, offset)),
  message,
})
const inOrder = (a: Problem, b: Problem) => a.line - b.line || a.column - b.column

const expected: { readonly [type: string]: string } = {
  object: 'a map of keys and values',
  array: 'a list',
  string: 'a string',
  boolean: 'true or false',
}

type Found = { readonly wrong: Finding[]; readonly near: Finding[] }

/** Replaces values of the wrong type by null, which means absent (like an empty `key:`). patch.ts checks the content of patches. */
function checkShape(value: Json, { type = '', ...rest }: Schema, at: At, found: Found): Json {
  if (value === null) return null
  if (typeOf(value) !== type) {
    found.wrong.push({ at, message: `${at.join('.')} must be ${expected[type]}, not ${nameOf(value)}` })
    return null
  }
  if (rest.enum && !rest.enum.includes(value as string)) {
    const hint = didYouMeanOneOf(String(value), rest.enum)
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
  const typed = emptyMap()
  for (const [key, member] of Object.entries(value)) {
    const inside = Object.hasOwn(properties, key) ? properties[key] : rest.additionalProperties
    typed[key] = isSchema(inside) ? checkShape(member, inside, [...at, key], found) : member
    if (isSchema(inside)) continue
    const name = [...at, key].join('.')
    const finding = (message: string): Finding => ({ at: [...at, key], key: true, message })
    if (inside === false)
      found.wrong.push(finding(`unknown key ${name}${didYouMean(key, known)} (known: ${known.join(', ')})`))
    // Other programs may read unknown keys. Warn only if the key looks like a typo of an unused one.
    const hint =
      inside === false
        ? ''
        : didYouMean(
            key,
            known.filter(one => !Object.hasOwn(value, one)),
          )
    if (hint) found.near.push(finding(`${name} has no effect here${hint}`))
  }
  return typed
}

const isSchema = (value: unknown): value is Schema => typeof value === 'object' && value !== null
const typeOf = (value: Json) => (Array.isArray(value) ? 'array' : typeof value)
const nameOf = (value: Json) => (typeof value === 'number' ? 'a number' : (expected[typeOf(value)] ?? 'nothing'))

/** Fills in defaults and keeps keys that the schema does not know. */
function merge(value: Json | undefined, { properties, default: fallback }: Schema): Json {
  if (!properties) return value ?? (structuredClone(fallback) as Json) ?? null
  if (value !== undefined && value !== null && !isObject(value)) return value
  const merged = emptyMap()
  for (const [key, member] of Object.entries(value ?? {})) merged[key] = member as Json
  for (const [key, inside] of Object.entries(properties)) merged[key] = merge(merged[key], inside)
  return merged
}
