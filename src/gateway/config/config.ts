// Reads a gateway.yaml, and reports all problems together with line and column.

import { didYouMean, didYouMeanOneOf } from '../../api/did-you-mean.ts'
import { isObject, type Json, type JsonObject } from '../../api/object.ts'
import type { Schema } from '../../api/schema.ts'
import { type At, type ConfigText, ConfigTextError, type Problem, readConfigText } from '../../api/yaml-source.ts'
import { checkRules, type Finding, type PartialConfig } from './rules.ts'
import { embeddedSchema, type GatewayConfig, standaloneSchema } from './schema.ts'

/** With problems, `config` contains the parts of the right type. */
export type LoadedConfig = { readonly config: GatewayConfig; readonly problems: readonly Problem[] }

/** `alone`: for a standalone gateway. Otherwise for the one in `platform serve`, which has its own listener, issuer and log. */
export function loadGatewayConfig(bytes: Uint8Array, alone: boolean): LoadedConfig {
  let text: ConfigText
  try {
    text = readConfigText(bytes)
  } catch (error) {
    if (!(error instanceof ConfigTextError)) throw error
    return { config: {}, problems: error.problems }
  }
  const findings: Finding[] = []
  const valid = validPart(text.value, {
    schema: (alone ? standaloneSchema : embeddedSchema) as Schema,
    at: [],
    findings,
  })
  if (!alone)
    for (const [index, one] of findings.entries())
      if (
        one.key &&
        one.at.length === 1 &&
        Object.hasOwn((standaloneSchema as Schema).properties ?? {}, String(one.at[0]))
      )
        findings[index] = {
          ...one,
          message: `${one.at[0]} is only for a standalone gateway; platform serve uses its own settings`,
        }
  // The rules rely on the types, so a rule that depends on a part of the wrong type is skipped.
  const isDoubtful = ({ at }: Finding) => findings.some(one => !one.missing && isWithin(one.at, at))
  findings.push(...checkRules((valid ?? {}) as PartialConfig).filter(one => !isDoubtful(one)))
  const config = withoutGaps(valid ?? {}) as GatewayConfig
  const problems = findings
    .map(({ at, key, message }) => ({ ...(key ? text.positionOfKey(at) : text.positionOf(at)), message }))
    .toSorted((one, other) => one.line - other.line || one.column - other.column)
  return { config, problems }
}

const expected: { readonly [type: string]: string } = {
  object: 'a map of keys and values',
  array: 'a list',
  string: 'a string',
  integer: 'a whole number',
  boolean: 'true or false',
}

type Shaping = { readonly schema: Schema; readonly at: At; readonly findings: Finding[] }

/** The part with the right type; undefined: none. A list keeps the indexes of its items. */
function validPart(value: Json, { schema, at, findings }: Shaping): unknown {
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

function withoutGaps(value: unknown): unknown {
  if (Array.isArray(value)) return value.filter(one => one !== undefined).map(withoutGaps)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, member]) => member !== undefined)
      .map(([key, member]) => [key, withoutGaps(member)]),
  )
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
