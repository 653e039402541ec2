// Reads a gateway.yaml: everything that is wrong with it at once, with line and column. bin opens what it names.

import { type At, type ConfigText, ConfigTextError, type Problem, readConfigText } from '../api/config-text.ts'
import { didYouMean } from '../api/nearest.ts'
import { isObject, type Json, type JsonObject } from '../api/object.ts'
import type { Schema } from '../api/schema.ts'
import { checkRules } from './config-rules.ts'
import { aloneSchema, type GatewayConfig, insideSchema } from './config-schema.ts'

/** Something wrong at a place in the value. `key`: the key is meant and not its value. */
export type Finding = { readonly at: At; readonly key?: boolean; readonly message: string }

export type LoadedConfig = { readonly config: GatewayConfig; readonly problems: readonly Problem[] }

/** `alone`: a gateway of its own; otherwise one that `platform serve` serves, which has its own listener, issuer and log. */
export function loadGatewayConfig(bytes: Uint8Array, alone: boolean): LoadedConfig {
  let text: ConfigText
  try {
    text = readConfigText(bytes)
  } catch (error) {
    if (!(error instanceof ConfigTextError)) throw error
    return { config: {}, problems: error.problems }
  }
  const findings: Finding[] = []
  checkShape(text.value, (alone ? aloneSchema : insideSchema) as Schema, [], findings)
  if (!alone)
    for (const [index, one] of findings.entries())
      if (one.key && one.at.length === 1 && Object.hasOwn((aloneSchema as Schema).properties ?? {}, String(one.at[0])))
        findings[index] = { ...one, message: `${one.at[0]} is for a gateway of its own; here the service has it` }
  const config = text.value as unknown as GatewayConfig
  // The rules read what the shape promises.
  if (findings.length === 0) findings.push(...checkRules(config))
  const problems = findings
    .map(({ at, key, message }) => ({ ...(key ? text.placeOfKey(at) : text.placeOf(at)), message }))
    .toSorted((one, other) => one.line - other.line || one.column - other.column)
  return { config, problems }
}

const expected: { readonly [type: string]: string } = {
  object: 'a map of keys and values',
  array: 'a list',
  string: 'a text',
  integer: 'a whole number',
  boolean: 'true or false',
}

function checkShape(value: Json, schema: Schema, at: At, findings: Finding[]): void {
  const { type = '', minimum } = schema
  const name = nameOf(at)
  if (!isOf(value, type)) {
    findings.push({ at, message: `${name} must be ${expected[type]}` })
    return
  }
  if (schema.enum && !schema.enum.includes(value as string))
    findings.push({
      at,
      message: `${name} must be ${schema.enum.join(' or ')}${didYouMean(String(value), schema.enum)}`,
    })
  if (minimum !== undefined && (value as number) < minimum)
    findings.push({ at, message: `${name} must be at least ${minimum}` })
  if (isObject(value)) checkKeys(value, schema, at, findings)
  if (Array.isArray(value) && schema.items)
    for (const [index, item] of value.entries()) checkShape(item as Json, schema.items, [...at, index], findings)
}

function checkKeys(value: JsonObject, { properties = {}, required = [] }: Schema, at: At, findings: Finding[]): void {
  for (const [key, member] of Object.entries(value)) {
    const inside = Object.hasOwn(properties, key) ? properties[key] : undefined
    if (inside) checkShape(member, inside, [...at, key], findings)
    else {
      const known = Object.keys(properties)
      const message = `${nameOf([...at, key])} is no known key${didYouMean(key, known)} (known: ${known.join(', ')})`
      findings.push({ at: [...at, key], key: true, message })
    }
  }
  for (const key of required)
    if (!Object.hasOwn(value, key)) findings.push({ at, message: `${nameOf([...at, key])} is missing` })
}

const nameOf = (at: At): string =>
  at.map((step, index) => (typeof step === 'number' ? `[${step}]` : `${index ? '.' : ''}${step}`)).join('') ||
  'the file'

function isOf(value: Json, type: string): boolean {
  if (type === 'array') return Array.isArray(value)
  if (type === 'object') return isObject(value)
  if (type === 'integer') return Number.isSafeInteger(value)
  return typeof value === type
}
