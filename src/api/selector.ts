// Parses label and field selectors, and matches objects (kubernetes-wire §1.11).
import { labelValue, qualifiedName } from './names.ts'

/** The message of upstream, complete for the client. */
export class SelectorError extends Error {
  override readonly name = 'SelectorError'
}

export type LabelSelector = {
  readonly matches: (labels: { readonly [key: string]: string } | undefined) => boolean
  readonly empty: boolean
  /** Requirements that an index supports: the label has one of these values. */
  readonly equalities: readonly { readonly key: string; readonly values: readonly string[] }[]
  readonly toString: () => string
}

export type FieldTerm = { readonly field: string; readonly op: '=' | '!='; readonly value: string }

export type FieldSelector = {
  readonly terms: readonly FieldTerm[]
  readonly matches: (get: (field: string) => string) => boolean
  readonly empty: boolean
  readonly toString: () => string
}

type Operator = 'in' | 'notin' | '=' | '==' | '!=' | '>' | '<' | 'exists' | '!'
type Requirement = { readonly key: string; readonly op: Operator; readonly values: readonly string[] }

const IS_PUNCTUATION = /^[=!(),<>]/
const BINARY = ['in', 'notin', '=', '==', '!=', '>', '<']

export function parseLabelSelector(text: string): LabelSelector {
  const requirements = parseRequirements(text)
  requirements.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
  return {
    matches: labels => requirements.every(requirement => isMet(requirement, labels)),
    empty: requirements.length === 0,
    equalities: requirements.filter(({ op }) => op === '=' || op === '==' || op === 'in'),
    toString: () => requirements.map(print).join(','),
  }
}

function isMet({ key, op, values }: Requirement, labels: { readonly [key: string]: string } | undefined): boolean {
  const value = labels !== undefined && Object.hasOwn(labels, key) ? labels[key] : undefined
  if (op === '!') return value === undefined
  if (op === '!=' || op === 'notin') return value === undefined || !values.includes(value)
  if (value === undefined) return false
  if (op === 'exists') return true
  if (op !== '>' && op !== '<') return values.includes(value)
  const actual = toInteger(value)
  const wanted = toInteger(values[0] ?? '')
  if (actual === undefined || wanted === undefined) return false
  return op === '>' ? actual > wanted : actual < wanted
}

/** A 64-bit integer like upstream. Label values have no sign. */
function toInteger(value: string): bigint | undefined {
  if (!/^\d{1,63}$/.test(value)) return undefined
  const integer = BigInt(value)
  return integer < 2n ** 63n ? integer : undefined
}

function print({ key, op, values }: Requirement): string {
  if (op === 'exists') return key
  if (op === '!') return `!${key}`
  return op === 'in' || op === 'notin' ? `${key} ${op} (${values.join(',')})` : `${key}${op}${values[0]}`
}

/** The grammar of upstream's `labels.Parse`, with the same errors. The token '' is the end of the text. */
function parseRequirements(text: string): Requirement[] {
  const tokens = text.match(/[=!]=|[=!(),<>]|[^ \t\r\n=!(),<>]+/g) ?? []
  const requirements: Requirement[] = []
  let at = 0
  const peek = () => tokens[at] ?? ''
  const take = () => tokens[at++] ?? ''

  function refuse(found: string, expected: string): never {
    throw new SelectorError(`found '${found}'${expected}`)
  }

  function parseRequirement(): Requirement {
    const isAbsent = peek() === '!'
    if (isAbsent) at++
    const key = take()
    if (!isIdentifier(key)) refuse(key, ', expected: identifier')
    const problems = qualifiedName(key)
    if (problems.length > 0) throw new SelectorError(invalid('<nil>', key, problems))
    if (isAbsent) return { key, op: '!', values: [] }
    if (peek() === '' || peek() === ',') return { key, op: 'exists', values: [] }
    const op = take()
    if (!BINARY.includes(op)) refuse(op, ', expected: in, notin, =, ==, !=, gt, lt')
    const values = op === 'in' || op === 'notin' ? parseValues() : [parseExactValue()]
    return checked({ key, op: op as Operator, values: [...new Set(values)].sort() })
  }

  function parseExactValue(): string {
    if (peek() === '' || peek() === ',') return ''
    const value = take()
    return isIdentifier(value) ? value : refuse(value, ', expected: identifier')
  }

  function parseValues(): string[] {
    const open = take()
    if (open !== '(') refuse(open, " expected: '('")
    const first = peek()
    if (first === ')') {
      at++
      return ['']
    }
    if (first !== ',' && !isIdentifier(first)) refuse(first, ", expected: ',', ')' or identifier")
    const values = parseList()
    at++
    return values
  }

  /** Reads up to the closing parenthesis. Nothing between two commas is the empty value. */
  function parseList(): string[] {
    const values: string[] = []
    for (;;) {
      const token = take()
      if (isIdentifier(token)) {
        values.push(token)
        if (peek() === ')') return values
        if (peek() !== ',') refuse(peek(), ", expected: ',' or ')'")
      } else if (token === ',') {
        if (values.length === 0 || peek() === ')' || peek() === ',') values.push('')
        if (peek() === ')') return values
        if (peek() === ',') at++
      } else refuse(token, ", expected: ',', or identifier")
    }
  }

  while (peek() !== '') {
    if (!isIdentifier(peek()) && peek() !== '!') refuse(peek(), ", expected: !, identifier, or 'end of string'")
    requirements.push(inRequirement(parseRequirement))
    const separator = take()
    if (separator === '') break
    if (separator !== ',') refuse(separator, ", expected: ',' or 'end of string'")
    if (!isIdentifier(peek()) && peek() !== '!') refuse(peek(), ", expected: identifier after ','")
  }
  return requirements
}

function isIdentifier(token: string): boolean {
  return token !== '' && !IS_PUNCTUATION.test(token)
}

function inRequirement(parse: () => Requirement): Requirement {
  try {
    return parse()
  } catch (error) {
    if (error instanceof SelectorError) throw new SelectorError(`unable to parse requirement: ${error.message}`)
    throw error
  }
}

function checked(requirement: Requirement): Requirement {
  const { key, op, values } = requirement
  const errors: string[] = []
  if ((op === '>' || op === '<') && toInteger(values[0] ?? '') === undefined) {
    errors.push(invalid('values[0]', values[0] ?? '', ["for 'Gt', 'Lt' operators, the value must be an integer"]))
  }
  values.forEach((value, index) => {
    const problems = labelValue(value)
    if (problems.length > 0) errors.push(invalid(`values[${index}][${key}]`, value, problems))
  })
  if (errors.length > 0) throw new SelectorError(errors.length === 1 ? errors.join() : `[${errors.join(', ')}]`)
  return requirement
}

function invalid(field: string, value: string, problems: readonly string[]): string {
  return `${field}: Invalid value: ${JSON.stringify(value)}: ${problems.join('; ')}`
}

/** `supported`: the fields of the kind that selectors may use. `teamNamed` replaces the username of a team by its name (D23). */
export function parseFieldSelector(
  text: string,
  supported: readonly string[],
  teamNamed: (text: string) => string = same,
): FieldSelector {
  const parts = partsOf(text).sort()
  const terms = parts.map(part => withTeamName(parseTerm(part, text), teamNamed))
  for (const { field } of terms) {
    if (!supported.includes(field)) throw new SelectorError(`field label not supported: ${field}`)
  }
  return {
    terms,
    matches: get => terms.every(({ field, op, value }) => (get(field) === value) === (op === '=')),
    empty: terms.length === 0,
    toString: () => terms.map(({ field, op, value }) => `${field}${op}${escapeValue(value)}`).join(','),
  }
}

/** The fields of a selector, supported or not. Throws if the selector is invalid. */
export const fieldsInSelector = (text: string): readonly string[] =>
  partsOf(text).map(part => parseTerm(part, text).field)

const partsOf = (text: string) => text.match(/(?:\\[\s\S]|[^\\,]|\\$)+/g) ?? []

const same = (text: string) => text

const withTeamName = (term: FieldTerm, teamNamed: (text: string) => string): FieldTerm =>
  term.field === 'spec.team' ? { ...term, value: teamNamed(term.value) } : term

function parseTerm(part: string, whole: string): FieldTerm {
  const operator = /!=|==?/.exec(part)
  if (operator === null) throw new SelectorError(`invalid selector: '${whole}'; can't understand '${part}'`)
  const field = part.slice(0, operator.index)
  const value = unescapeValue(part.slice(operator.index + operator[0].length))
  return { field, op: operator[0] === '!=' ? '!=' : '=', value }
}

/** A value for a field selector. */
export function escapeValue(value: string): string {
  return value.replace(/[\\,=]/g, '\\$&')
}

function unescapeValue(value: string): string {
  return value.replace(/\\([\s\S]?)|=/gu, (sequence, escaped?: string) => {
    // Upstream prints the character code, and 61 is '='. An unescaped ',' ends the term before.
    if (sequence === '=') throw new SelectorError('invalid field selector: unescaped character in value: 61')
    if (escaped === '\\' || escaped === ',' || escaped === '=') return escaped
    throw new SelectorError(`invalid field selector: invalid escape sequence: ${sequence}`)
  })
}
