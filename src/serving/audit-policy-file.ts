// Reads an audit Policy from YAML, and reports all of its problems together.

import { dnsSubdomain } from '../api/names.ts'
import { isObject, type Json, type JsonObject } from '../api/object.ts'
import { decodeYamlFile } from '../api/yaml-codec.ts'
import { levels, type Policy, stages } from './audit-policy.ts'

/** All problems of a file, each with its position and the expected value. */
export class PolicyError extends Error {
  readonly problems: readonly string[]
  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.problems = problems
  }
}

/** Returns the problems of a value at a position. */
type Check = (value: Json, at: string) => readonly string[]

const what = (value: Json) =>
  value === null ? 'null' : Array.isArray(value) ? 'a list' : isObject(value) ? 'a map' : JSON.stringify(value)
const isText: Check = (value, at) => (typeof value === 'string' ? [] : [`${at}: ${what(value)} is not a string`])
const isFlag: Check = (value, at) => (typeof value === 'boolean' ? [] : [`${at}: ${what(value)} is not true or false`])
const anything: Check = () => []
const oneOf =
  (words: readonly string[]): Check =>
  (value, at) =>
    words.includes(value as string) ? [] : [`${at}: ${what(value)} must be one of ${words.join(', ')}`]
const listOf =
  (check: Check): Check =>
  (value, at) =>
    // An empty key is an empty list, as in Kubernetes.
    value === null
      ? []
      : Array.isArray(value)
        ? value.flatMap((one: Json, index) => check(one, `${at}[${index}]`))
        : [`${at}: ${what(value)} is not a list`]
const mapOf =
  (fields: { readonly [name: string]: Check }, rule: (map: JsonObject, at: string) => readonly string[]): Check =>
  (value, at) => {
    if (!isObject(value)) return [`${at || 'the policy'}: ${what(value)} is not a map`]
    const below = (name: string) => (at ? `${at}.${name}` : name)
    const problems = Object.entries(value).flatMap(([name, one]) => {
      const check = Object.hasOwn(fields, name) ? fields[name] : undefined
      if (check) return check(one, below(name))
      return [`${below(name)}: unknown field; known fields: ${Object.keys(fields).join(', ')}`]
    })
    return [...problems, ...rule(value, at)]
  }

const isGroup: Check = (value, at) =>
  typeof value !== 'string'
    ? isText(value, at)
    : value === ''
      ? []
      : dnsSubdomain(value).map(
          text => `${at}: ${what(value)} is not an API group (name the group without its version): ${text}`,
        )

const isUrl: Check = (value, at) => {
  if (typeof value !== 'string') return isText(value, at)
  if (value === '*') return []
  return [
    ...(value.startsWith('/') ? [] : [`${at}: ${what(value)} must start with /`]),
    ...(value.slice(0, -1).includes('*') ? [`${at}: ${what(value)} may contain * only as its last character`] : []),
  ]
}

const length = (value: Json | undefined) => (Array.isArray(value) ? value.length : 0)

const isGroupResources = mapOf(
  { group: isGroup, resources: listOf(isText), resourceNames: listOf(isText) },
  (map, at) =>
    length(map['resourceNames']) && !length(map['resources']) ? [`${at}.resourceNames: requires resources`] : [],
)

const isStages = listOf(oneOf(stages))

const isRule = mapOf(
  {
    level: oneOf(levels),
    users: listOf(isText),
    userGroups: listOf(isText),
    verbs: listOf(isText),
    resources: listOf(isGroupResources),
    namespaces: listOf(isText),
    nonResourceURLs: listOf(isUrl),
    omitStages: isStages,
    omitManagedFields: isFlag,
  },
  (map, at) => [
    ...(map['level'] === undefined ? [`${at}.level: is missing; it must be one of ${levels.join(', ')}`] : []),
    ...(length(map['nonResourceURLs']) && (length(map['resources']) || length(map['namespaces']))
      ? [`${at}.nonResourceURLs: cannot be combined with resources or namespaces; use two rules`]
      : []),
  ],
)

const isPolicy = mapOf(
  {
    apiVersion: oneOf(['audit.k8s.io/v1']),
    kind: oneOf(['Policy']),
    metadata: anything,
    rules: listOf(isRule),
    omitStages: isStages,
    omitManagedFields: isFlag,
  },
  map => [
    ...(map['apiVersion'] === undefined ? ['apiVersion: is missing; it must be audit.k8s.io/v1'] : []),
    ...(map['kind'] === undefined ? ['kind: is missing; it must be Policy'] : []),
    // Kubernetes rejects a policy without rules as well: most likely they are misplaced in the file.
    ...(length(map['rules']) || (map['rules'] !== undefined && !Array.isArray(map['rules']) && map['rules'] !== null)
      ? []
      : ['rules: requires at least one rule; to record nothing, use - level: None']),
  ],
)

/** Throws PolicyError. */
export function readPolicy(bytes: Uint8Array): Policy {
  const { value, duplicates } = decoded(bytes)
  const problems = [...duplicates, ...isPolicy(value, '')]
  if (problems.length) throw new PolicyError(problems)
  return withoutNulls(value) as unknown as Policy
}

function decoded(bytes: Uint8Array) {
  try {
    return decodeYamlFile(bytes)
  } catch (error) {
    throw new PolicyError([(error as Error).message])
  }
}

function withoutNulls(value: Json): Json {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, one]) => (one === null ? [] : [[key, withoutNulls(one)]])),
  )
}
