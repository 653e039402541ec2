// Maps the claims of a verified token to a user: claim rules, username, groups, uid, extra, user rules.

import { type Finding, nameOf } from '../../api/config-shape.ts'
import { isReservedName } from '../../api/names.ts'
import { isObject, type Json, type JsonObject } from '../../api/object.ts'
import type { At } from '../../api/yaml-source.ts'
import { groupPrefixOf, usernamePrefixOf } from './auth-config-rules.ts'
import type { ClaimRule, JwtEntry } from './auth-config-schema.ts'
import { CelError, celValue, compile, type Expression, ExpressionProblem, type ResultType, type Scope } from './cel.ts'

export type MappedUser = {
  readonly username: string
  readonly uid?: string
  readonly groups: readonly string[]
  readonly extra: { readonly [key: string]: readonly string[] }
}

/** Why the claims of a verified token are rejected. The message contains no claim. */
export class MappingError extends Error {}

/** One check of the mapping. `rule`: its expression or claim. `problem`: why it failed. */
export type MappingCheck = {
  readonly name: string
  readonly rule?: string | undefined
  readonly problem: string | undefined
  /** The result, of the check that maps the claims. */
  readonly user?: MappedUser & { readonly droppedGroups: number }
}

export type Mapping = {
  /** Throws MappingError. */
  map(claims: JsonObject): MappedUser & { readonly droppedGroups: number }
  /** Runs the checks one by one. User rules without a user fail. */
  checks(claims: JsonObject): Iterable<MappingCheck>
  /** The source of groups; undefined: there are none. */
  readonly groups: Source | undefined
}

const maxGroups = 200
export const maxName = 512
const maxGroupName = 256
const maxExtraValue = 1024

/** Additions of a login entry to the mapping of groups and names. */
export type MappingOptions = {
  /** Groups are kept before they get their prefix. Default: all. */
  readonly keepGroup?: (group: string) => boolean
  /** Names that belong to another entry, if this one has the empty prefix. */
  readonly isForeignUser?: (username: string) => boolean
  readonly isForeignGroup?: (group: string) => boolean
  /** How to have fewer groups. */
  readonly fewerGroups?: string
}

type Compile = (path: At, text: string | undefined, scope: Scope, result: ResultType) => Expression | undefined

/** Compiles the sources of an entry. Adds problems to `findings`. */
export function mappingTools(at: At, findings: Finding[]): Tools {
  const add = (path: At, message: string) =>
    findings.push({ at: [...at, ...path], message: `${nameOf([...at, ...path])} ${message}` })
  const expression: Compile = (path, text, scope, result) => {
    if (text === undefined) return undefined
    try {
      return compile(text, scope, result)
    } catch (error) {
      if (!(error instanceof ExpressionProblem)) throw error
      add(path, `(character ${error.offset + 1}): ${error.message}`)
      return undefined
    }
  }
  return { add, expression }
}

/** With problems in `tools`, the mapping is not usable. */
export function compileMapping(entry: JwtEntry, { add, expression }: Tools, options: MappingOptions = {}): Mapping {
  const { username, groups, uid, extra = [] } = entry.claimMappings ?? {}
  const rules = (entry.claimValidationRules ?? []).map((rule, index) =>
    claimRule(rule, ['claimValidationRules', index], { add, expression }),
  )
  const sources = {
    username: source(username ?? {}, ['claimMappings', 'username'], 'string', { add, expression }),
    groups: groups && source(groups, ['claimMappings', 'groups'], 'strings', { add, expression }),
    uid: uid && source(uid, ['claimMappings', 'uid'], 'string', { add, expression }),
  }
  const extras = extra.map(({ key = '', valueExpression }, index) => ({
    key,
    value: expression(['claimMappings', 'extra', index, 'valueExpression'], valueExpression, 'claims', 'value'),
  }))
  const users = (entry.userValidationRules ?? []).map(({ expression: text, message }, index) => ({
    name: `userValidationRules[${index}]`,
    rule: text,
    message: message ?? `user rule ${index} does not hold`,
    holds: expression(['userValidationRules', index, 'expression'], text, 'user', 'bool'),
  }))
  checkEmail(entry, sources.username, {
    add,
    others: [...rules, ...extras.map(({ value }) => ({ expression: value }))],
  })
  const prefixes = { username: usernamePrefixOf(entry), groups: groupPrefixOf(entry) }
  function* checks(claims: JsonObject): Generator<MappingCheck> {
    const values = celValue(claims)
    for (const { name, rule, check } of rules) yield { name, rule, problem: problemOf(() => check(claims, values)) }
    let user: MappedUser | undefined
    let droppedGroups = 0
    const problem = problemOf(() => {
      const mapped = toUser(claims, values, { sources, extras, prefixes, options })
      if (mapped.problem === undefined) ({ user, droppedGroups } = mapped)
      return mapped.problem
    })
    yield { name: 'claimMappings', problem, ...(user ? { user: { ...user, droppedGroups } } : {}) }
    const variable = user && { ...user, uid: user.uid ?? '', extra: new Map(Object.entries(user.extra)) }
    const holdsFor = (name: string, holds: Expression | undefined) =>
      run(name, () => holds?.evaluate(variable)) === true
    for (const { name, rule, message, holds } of users) {
      const check = () => (holdsFor(name, holds) ? undefined : message)
      yield { name, rule, problem: variable ? problemOf(check) : 'not checked, because the claims give no user' }
    }
  }
  return {
    groups: sources.groups,
    checks,
    map(claims) {
      let mapped: MappingCheck['user']
      for (const { problem, user } of checks(claims)) {
        if (problem !== undefined) throw new MappingError(problem)
        mapped ??= user
      }
      if (!mapped) throw new MappingError('the claims give no user')
      return mapped
    },
  }
}

/** The problem that a check returns, or throws as a MappingError. */
function problemOf(check: () => string | undefined): string | undefined {
  try {
    return check()
  } catch (error) {
    if (error instanceof MappingError) return error.message
    throw error
  }
}

/** Runs an expression. Throws MappingError with the place of the expression. */
function run<T>(name: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (error instanceof CelError) throw new MappingError(`${name}: ${error.message}`)
    throw error
  }
}

export type Tools = { readonly add: (path: At, message: string) => void; readonly expression: Compile }
type CompiledRule = {
  readonly name: string
  readonly rule: string | undefined
  readonly expression: Expression | undefined
  /** Why the rule does not hold; undefined: it holds. */
  readonly check: (claims: JsonObject, values: unknown) => string | undefined
}

function claimRule(rule: ClaimRule, at: At, { add, expression }: Tools): CompiledRule {
  const { claim, requiredValue = '', expression: text, message } = rule
  const name = nameOf(at)
  if ((claim === undefined) === (text === undefined)) add(at, 'requires either claim or expression')
  if (claim !== undefined && message !== undefined) add([...at, 'message'], 'is only for an expression; remove it')
  if (text !== undefined && rule.requiredValue !== undefined)
    add([...at, 'requiredValue'], 'is only for a claim; remove it')
  const compiled = expression([...at, 'expression'], text, 'claims', 'bool')
  const check: CompiledRule['check'] = (claims, values) => {
    if (claim !== undefined)
      return own(claims, claim) === requiredValue ? undefined : `the claim ${claim} does not have the required value`
    const holds = run(name, () => compiled?.evaluate(values)) === true
    return holds ? undefined : (message ?? `${name} does not hold`)
  }
  const asText = claim === undefined ? text : `${claim} == ${JSON.stringify(requiredValue)}`
  return { name, rule: asText, expression: compiled, check }
}

const own = (claims: JsonObject, name: string): Json | undefined =>
  Object.hasOwn(claims, name) ? claims[name] : undefined

export type Source = { readonly claim: string | undefined; readonly expression: Expression | undefined }

export function source(
  { claim, expression: text }: { readonly claim?: string | undefined; readonly expression?: string | undefined },
  at: At,
  result: ResultType,
  { add, expression }: Tools,
): Source {
  if ((claim === undefined) === (text === undefined)) add(at, 'requires either claim or expression')
  if (claim === '') add([...at, 'claim'], 'requires the name of a claim')
  return { claim, expression: expression([...at, 'expression'], text, 'claims', result) }
}

type Input = { readonly claims: JsonObject; readonly values: unknown }

/** `name`: the field of claimMappings, for errors. Throws MappingError. */
export function readSource(name: string, from: Source | undefined, { claims, values }: Input): Json | undefined {
  const { claim, expression } = from ?? {}
  if (claim !== undefined) return own(claims, claim)
  return run(`claimMappings.${name}`, () => expression?.evaluate(values)) as Json | undefined
}

/** As Kubernetes checks it: an e-mail is a username only if the provider verified it (D65). */
function checkEmail(
  entry: JwtEntry,
  username: Source,
  {
    add,
    others,
  }: { readonly add: Tools['add']; readonly others: readonly { readonly expression: Expression | undefined }[] },
): void {
  if (!username.expression?.reads('email')) return
  const all = [username.expression, ...others.map(({ expression }) => expression)]
  const isRequired = entry.claimValidationRules?.some(({ claim }) => claim === 'email_verified')
  if (isRequired || all.some(expression => expression?.reads('email_verified'))) return
  add(
    ['claimMappings', 'username', 'expression'],
    'reads claims.email, so it must also consider claims.email_verified, for example in claimValidationRules: claims.?email_verified.orValue(false) == true',
  )
}

type Sources = {
  readonly sources: { readonly username: Source; readonly groups: Source | undefined; readonly uid: Source | undefined }
  readonly extras: readonly { readonly key: string; readonly value: Expression | undefined }[]
  readonly prefixes: { readonly username: string; readonly groups: string }
  readonly options: MappingOptions
}

function toUser(claims: JsonObject, values: unknown, { sources, extras, prefixes, options }: Sources) {
  const { keepGroup = () => true, isForeignUser = () => false, isForeignGroup = () => false, fewerGroups } = options
  const read = (field: keyof Sources['sources']) => readSource(field, sources[field], { claims, values })
  const name = read('username')
  const username = `${prefixes.username}${typeof name === 'string' ? name : ''}`
  const given = groupsOf(read('groups'))?.filter(keepGroup)
  const named = given?.map(group => `${prefixes.groups}${group}`) ?? []
  const groups = [...new Set(named)].filter(group => !isReservedName(group) && !isForeignGroup(group))
  const uid = read('uid')
  const extra: { [key: string]: readonly string[] } = {}
  for (const { key, value } of extras) {
    const found = run(`claimMappings.extra ${key}`, () => value?.evaluate(values)) as string | string[]
    const list = [found].flat().filter(one => one !== '')
    if (list.length > 0) extra[key] = list
  }
  const problem =
    usernameProblem(claims, sources.username, { name, username }) ??
    (isForeignUser(username) ? 'the username starts with the prefix of another entry' : undefined) ??
    groupsProblem(given, named, fewerGroups) ??
    (uid !== undefined && (typeof uid !== 'string' || !isName(uid, maxName)) ? 'the uid is invalid' : undefined) ??
    (Object.values(extra).some(list => list.length > maxGroups || list.some(one => !isName(one, maxExtraValue)))
      ? 'an extra attribute is invalid'
      : undefined)
  const user: MappedUser = { username, groups, extra, ...(typeof uid === 'string' && uid !== '' ? { uid } : {}) }
  return { user, problem, droppedGroups: new Set(named).size - groups.length }
}

type Named = { readonly name: Json | undefined; readonly username: string }

function usernameProblem(claims: JsonObject, { claim }: Source, { name, username }: Named): string | undefined {
  if (typeof name !== 'string' || name === '') return 'the token has no username: the mapped claim must be a string'
  if (claim === 'email' && own(claims, 'email_verified') !== true)
    return 'the e-mail address of the token is not verified (claim email_verified)'
  if (!isName(username, maxName))
    return `the username has invisible characters or surrounding blanks, or more than ${maxName} characters`
  return isReservedName(username) ? 'the username starts with system: or platform:, which is reserved' : undefined
}

function groupsProblem(
  given: readonly string[] | undefined,
  named: readonly string[],
  fewerGroups = 'send fewer, or map only those that are needed',
): string | undefined {
  if (!given) return 'the groups of the token must be a string or a list of strings'
  if (given.length > maxGroups) return `the token has more than ${maxGroups} groups; ${fewerGroups}`
  // Servers that receive impersonation headers split them at commas.
  return named.every(group => isName(group, maxGroupName) && !group.includes(','))
    ? undefined
    : `a group has commas, invisible characters or surrounding blanks, or more than ${maxGroupName} characters`
}

/** undefined: not groups. */
function groupsOf(value: Json | undefined): readonly string[] | undefined {
  if (value === undefined || value === null) return []
  const list = typeof value === 'string' ? [value] : value
  if (!Array.isArray(list) || isObject(list) || !list.every(one => typeof one === 'string')) return undefined
  return (list as string[]).filter(one => one !== '')
}

/** Two names that look the same, or are the same as UTF-8, must not be two users. A gateway sends names as headers. */
export const isName = (text: string, most: number) =>
  text.length <= most && text.isWellFormed() && !/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(text) && text.trim() === text
