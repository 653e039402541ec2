// Checks a configuration file against its schema, and finds everything that is wrong with it.

import { didYouMean, didYouMeanOneOf } from './did-you-mean.ts'
import { isObject, type Json, type JsonObject } from './object.ts'
import type { Schema } from './schema.ts'
import type { At, ConfigText, Problem } from './yaml-source.ts'

/** Something wrong at a place in the value. `key`: the key is meant and not its value. `missing`: something that is not there. */
export type Finding = {
  readonly at: At
  readonly key?: boolean
  readonly missing?: boolean
  readonly message: string
}

/** Findings with their line and column, in the order of the file. */
export const problemsIn = (text: ConfigText, findings: readonly Finding[]): Problem[] =>
  findings
    .map(({ at, key, message }) => ({ ...(key ? text.positionOfKey(at) : text.positionOf(at)), message }))
    .toSorted((one, other) => one.line - other.line || one.column - other.column)

/** Whether a finding may only be the consequence of a part of the wrong type. */
export const isDoubtful = (findings: readonly Finding[], { at }: Finding): boolean =>
  findings.some(one => !one.missing && isWithin(one.at, at))

const expected: { readonly [type: string]: string } = {
  object: 'a map of keys and values',
  array: 'a list',
  string: 'a string',
  integer: 'a whole number',
  boolean: 'true or false',
}

type Shaping = { readonly schema: Schema; readonly at: At; readonly findings: Finding[] }

/** The part of the right type; undefined: none. A list keeps the indexes of its items. */
export function validPart(value: Json, { schema, at, findings }: Shaping): unknown {
  const { type = '', minimum } = schema
  const name = nameOf(at)
  const wrong = (message: string) => {
    findings.push({ at, message: `${name} must be ${message}` })
    return type === 'array' ? [undefined] : undefined
  }
  if (!isOf(value, type)) return wrong(expected[type] ?? '')
  if (schema.enum && !schema.enum.includes(value as string))
    return wrong(`${schema.enum.join(' or ')}${didYouMeanOneOf(String(value), schema.enum)}`)
  if (minimum !== undefined && (value as number) < minimum) return wrong(`at least ${minimum}`)
  if (isObject(value)) return validMembers(value, { schema, at, findings })
  const { items } = schema
  if (!Array.isArray(value) || !items) return value
  return value.map((item, index) => validPart(item as Json, { schema: items, at: [...at, index], findings }))
}

function validMembers(value: JsonObject, { schema, at, findings }: Shaping): object {
  const { properties = {}, required = [] } = schema
  const valid: { [key: string]: unknown } = Object.create(null)
  for (const [key, member] of Object.entries(value)) {
    const schemaOfKey = Object.hasOwn(properties, key) ? properties[key] : undefined
    if (schemaOfKey) valid[key] = validPart(member, { schema: schemaOfKey, at: [...at, key], findings })
    else {
      const known = Object.keys(properties)
      const message = `unknown key ${nameOf([...at, key])}${didYouMean(key, known)} (known: ${known.join(', ')})`
      findings.push({ at: [...at, key], key: true, message })
    }
  }
  for (const key of required)
    if (!Object.hasOwn(value, key)) findings.push({ at, missing: true, message: `${nameOf([...at, key])} is missing` })
  return valid
}

const isWithin = (at: At, outer: At) => outer.every((step, index) => at[index] === step)

export function withoutGaps(value: unknown): unknown {
  if (Array.isArray(value)) return value.filter(one => one !== undefined).map(withoutGaps)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, member]) => member !== undefined)
      .map(([key, member]) => [key, withoutGaps(member)]),
  )
}

export const nameOf = (at: At): string =>
  at.map((step, index) => (typeof step === 'number' ? `[${step}]` : `${index ? '.' : ''}${step}`)).join('') ||
  'the file'

function isOf(value: Json, type: string): boolean {
  if (type === 'array') return Array.isArray(value)
  if (type === 'object') return isObject(value)
  if (type === 'integer') return Number.isSafeInteger(value)
  return typeof value === type
}
