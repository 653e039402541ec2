// Validates scopes beyond their schema: contradictory rules (SPEC §2.8.1) and impossible names.

import type { Scope, ScopeRule } from '../api/caller.ts'
import { type FieldError, invalidValue, isEnough, required } from '../api/errors.ts'
import { isTargetName } from '../api/names.ts'
import { isPathPattern } from './rbac.ts'

/** Accepts names that `old` has in the same field, so that a stored scope stays updatable. */
export function checkScope(scope: Scope | undefined, old?: Scope): FieldError[] {
  const errors = [...checkNames(scope, old), ...checkSecrets(scope, old)]
  for (const [index, rule] of (scope?.rules ?? []).entries()) {
    if (isEnough(errors)) break
    const at = `spec.scope.rules[${index}]`
    for (const url of rule.nonResourceURLs ?? [])
      if (!isPathPattern(url) && !isEnough(errors))
        errors.push(
          invalidValue(`${at}.nonResourceURLs`, url, 'a wildcard must be the whole last path segment, as in /logs/*'),
        )
    for (const [position, one] of (rule.resources ?? []).entries())
      if (!isEnough(errors)) errors.push(...checkResources(one, `${at}.resources[${position}]`))
  }
  return errors
}

function checkNames(scope: Scope | undefined, old: Scope | undefined): FieldError[] {
  const kept = new Set(Array.from(namesIn(old), ({ kind, value }) => `${kind} ${value}`))
  const errors: FieldError[] = []
  for (const { kind, at, value } of namesIn(scope)) {
    if (isEnough(errors)) break
    // An empty value is the same as an absent one.
    if (value === '' || value === '*' || isTargetName(value) || kept.has(`${kind} ${value}`)) continue
    const right = 'must be a name of lower-case letters, digits, - and ., such as prod, or * for all'
    errors.push(invalidValue(`spec.scope.${at}`, value, right))
  }
  return errors
}

/** An entry names one secret, without wildcards. Others could never match. */
function checkSecrets(scope: Scope | undefined, old: Scope | undefined): FieldError[] {
  const kept = new Set(old?.secrets?.map(one => JSON.stringify(one)))
  const errors: FieldError[] = []
  for (const [index, entry] of (scope?.secrets ?? []).entries()) {
    if (isEnough(errors)) break
    if (kept.has(JSON.stringify(entry))) continue
    const at = `spec.scope.secrets[${index}]`
    const { namespace = '', project = '', name = '' } = entry
    if (!name) errors.push(required(`${at}.name`, 'the name of one secret'))
    if (!namespace === !project)
      errors.push(
        invalidValue(at, entry, 'must have a namespace for a SharedSecret, or a project for a ProjectSecret, not both'),
      )
    for (const [key, value] of Object.entries({ namespace, project, name }))
      if (value && !isTargetName(value))
        errors.push(invalidValue(`${at}.${key}`, value, 'must be one name of lower-case letters, digits, - and .'))
  }
  return errors
}

type Named = { readonly kind: string; readonly at: string; readonly value: string }

function* namesIn(scope: Scope = {}): Generator<Named> {
  for (const field of ['projects', 'spaces', 'virtualClusters', 'clusters'] as const)
    for (const [index, entry] of (scope[field] ?? []).entries())
      for (const [key, value] of Object.entries(entry))
        if (typeof value === 'string') yield { kind: `${field} ${key}`, at: `${field}[${index}].${key}`, value }
  for (const [index, { projects = [] }] of (scope.roles ?? []).entries())
    for (const [position, value] of projects.entries())
      yield { kind: 'roles', at: `roles[${index}].projects[${position}]`, value }
  for (const [index, { cluster = '' }] of (scope.rules ?? []).entries())
    yield { kind: 'rules', at: `rules[${index}].cluster`, value: cluster }
}

type Resources = NonNullable<ScopeRule['resources']>[number]

function checkResources({ resources = [], resourceNames = [] }: Resources, at: string): FieldError[] {
  const errors: FieldError[] = []
  if (resourceNames.length && resources.length === 0)
    errors.push(required(`${at}.resources`, 'required with resourceNames'))
  const times = new Map<string, number>()
  for (const one of resources) times.set(patternOf(one), (times.get(patternOf(one)) ?? 0) + 1)
  for (const one of resources) {
    if (isEnough(errors)) break
    const own = patternOf(one)
    if (wildcardsOver(own).some(pattern => (times.get(pattern) ?? 0) > (pattern === own ? 1 : 0)))
      errors.push(
        invalidValue(`${at}.resources`, one, 'is covered by another entry; entries with wildcards must not overlap'),
      )
  }
  return errors
}

const patternOf = (one: string) => one.split('/', 2).join('/')

/** The wildcard patterns that cover an entry. Uses a lookup, because a body may have very many entries. */
function wildcardsOver(one: string): string[] {
  const [kind, sub] = one.split('/')
  return sub === undefined ? ['*'] : ['*', `*/${sub}`, `${kind}/*`, '*/*']
}
