// Validates names, labels and finalizers, with the messages of Kubernetes.

const LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?'
const SUBDOMAIN = `${LABEL}(\\.${LABEL})*`
const QUALIFIED = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'

// The patterns above are for messages only. Searching for an invalid character needs no backtracking, whatever the
// length.
const NOT_LABEL = /[^-a-z0-9]|^-|-$|^$/
const NOT_SUBDOMAIN = /[^-.a-z0-9]|^[-.]|[-.]$|\.[-.]|-\.|^$/
const NOT_QUALIFIED = /[^-A-Za-z0-9_.]|^[-_.]|[-_.]$/

/** A text of megabytes is too long for any name. Searching it would take more time than the rest of the request. */
const MAX_SEARCHED = 4096
const isFound = (pattern: RegExp, text: string) => text.length <= MAX_SEARCHED && pattern.test(text)

const SUBDOMAIN_PROBLEM = explain(
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
  SUBDOMAIN,
  ['example.com'],
)
const LABEL_PROBLEM = explain(
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
  LABEL,
  ['my-name', '123-abc'],
)
const QUALIFIED_PROBLEM = explain(
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  QUALIFIED,
  ['MyName', 'my.name', '123-abc'],
)
const VALUE_PROBLEM = explain(
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  `(${QUALIFIED})?`,
  ['MyValue', 'my_value', '12345'],
)

/** Names of users and groups that only the server may set (D14, D61). */
export const isReservedName = (name: string): boolean => /^(system|platform):/.test(name)

/** Validates an object name. Each function returns its errors, or an empty list. */
export function dnsSubdomain(value: string): string[] {
  return subdomainProblems(value, value)
}

/** `generateName`: may end in a dash, because the server appends five characters. */
export function dnsSubdomainPrefix(value: string): string[] {
  return subdomainProblems(value, value.endsWith('-') ? `${value}a` : value)
}

function subdomainProblems(value: string, completed: string): string[] {
  const problems = lengthProblems(value, 253)
  if (isFound(NOT_SUBDOMAIN, completed)) problems.push(SUBDOMAIN_PROBLEM)
  return problems
}

/** Validates a namespace name. */
export function dnsLabel(value: string): string[] {
  const problems = lengthProblems(value, 63)
  if (isFound(NOT_LABEL, value)) problems.push(isFound(NOT_SUBDOMAIN, value) ? LABEL_PROBLEM : 'must not contain dots')
  return problems
}

/** Validates label keys, annotation keys and finalizers: `name` or `example.com/name`. */
export function qualifiedName(value: string): string[] {
  const parts = value.split('/', 3)
  if (parts.length > 2) {
    return [
      `a valid label key ${QUALIFIED_PROBLEM} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ]
  }
  const name = parts.at(-1) ?? ''
  const problems = parts.length === 2 ? prefixProblems(parts[0] ?? '') : []
  if (name === '') return [...problems, 'name part must be non-empty', `name part ${QUALIFIED_PROBLEM}`]
  for (const problem of lengthProblems(name, 63)) problems.push(`name part ${problem}`)
  if (isFound(NOT_QUALIFIED, name)) problems.push(`name part ${QUALIFIED_PROBLEM}`)
  return problems
}

function prefixProblems(prefix: string): string[] {
  if (prefix === '') return ['prefix part must be non-empty']
  return dnsSubdomain(prefix).map(problem => `prefix part ${problem}`)
}

export function labelValue(value: string): string[] {
  const problems = lengthProblems(value, 63)
  if (isFound(NOT_QUALIFIED, value)) problems.push(VALUE_PROBLEM)
  return problems
}

/** In bytes of UTF-8, like upstream. */
function lengthProblems(value: string, limit: number): string[] {
  // A UTF-16 unit has at most three bytes, so most names need no encoding.
  const isFine = value.length * 3 <= limit || (value.length <= limit && new TextEncoder().encode(value).length <= limit)
  return isFine ? [] : [`must be no more than ${limit} bytes`]
}

function explain(rule: string, pattern: string, examples: readonly string[]): string {
  const shown = examples.map(example => `'${example}', `).join(' or ')
  return `${rule} (e.g. ${shown}regex used for validation is '${pattern}')`
}

/** Validates names of the RBAC kinds: any single path segment. */
export function pathSegment(value: string): string[] {
  if (value === '.' || value === '..') return [`may not be '${value}'`]
  return ['/', '%'].filter(one => value.includes(one)).map(one => `may not contain '${one}'`)
}

const TARGET_NAME = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/

/**
 * Whether it is a valid name of a cluster, project, space or virtual cluster in scopes, gateway configurations and
 * URLs.
 */
export const isTargetName = (value: string): boolean => TARGET_NAME.test(value)
