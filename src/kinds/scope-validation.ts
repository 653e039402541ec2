// Validates scopes beyond their schema: entries that can never match are errors (D25).

import type { Scope, ScopeRole, ScopeSecret } from '../api/caller.ts'
import { type FieldError, invalidValue, isEnough, notSupported, required } from '../api/errors.ts'
import { dnsLabel, isTargetName } from '../api/names.ts'
import { checkRule, rightName } from './scope-rule-validation.ts'

export const scopeRoles = ['agent', 'metrics-reader', 'platform-cli'] as const
export type ScopeRoleName = (typeof scopeRoles)[number]

/** Accepts entries that `old` has in the same list, so that a stored scope stays updatable. */
export function checkScope(scope: Scope = {}, old: Scope = {}): FieldError[] {
  const errors: FieldError[] = []
  const each = <T>(field: keyof Scope, check: (entry: T, at: string) => readonly FieldError[]) => {
    const entries = (scope[field] ?? []) as readonly T[]
    if (entries.length === 0) return
    const kept = new Set(((old[field] ?? []) as readonly T[]).map(one => JSON.stringify(one)))
    for (const [index, entry] of entries.entries()) {
      if (isEnough(errors)) return
      if (!kept.has(JSON.stringify(entry))) errors.push(...check(entry, `spec.scope.${field}[${index}]`))
    }
  }
  for (const [field, names] of Object.entries(targets))
    each<Names>(field as keyof Scope, (entry, at) => checkNames(entry, names, at))
  each('roles', checkRole)
  each('rules', checkRule)
  each('secrets', checkSecret)
  return errors
}

type Names = { readonly [name: string]: unknown }

/** The names that an entry needs in order to match, with what they are. */
const targets = {
  projects: { project: 'name of the project' },
  spaces: { project: 'name of the project of the space', space: 'name of the space' },
  virtualClusters: {
    project: 'name of the project of the virtual cluster',
    virtualCluster: 'name of the virtual cluster',
  },
  clusters: { cluster: 'name of the cluster' },
} as const

function checkNames(entry: Names, names: { readonly [name: string]: string }, at: string): FieldError[] {
  return Object.entries(names).flatMap(([name, what]) => checkName(entry[name], `${at}.${name}`, what))
}

function checkName(value: unknown, at: string, what: string): FieldError[] {
  if (value === undefined || value === '') return [required(at, `the ${what}, or * for all`)]
  return value === '*' || isTargetName(value as string) ? [] : [invalidValue(at, value, rightName)]
}

function checkRole({ role = '', projects = [], virtualClusters = [] }: ScopeRole, at: string): FieldError[] {
  const errors: FieldError[] = []
  if (!role) errors.push(required(`${at}.role`, `one of ${scopeRoles.join(', ')}`))
  else if (!(scopeRoles as readonly string[]).includes(role)) errors.push(notSupported(`${at}.role`, role, scopeRoles))
  for (const [field, names, what] of [
    ['projects', projects, 'name of a project'],
    ['virtualClusters', virtualClusters, 'name of a virtual cluster'],
  ] as const)
    for (const [index, name] of names.entries())
      if (!isEnough(errors)) errors.push(...checkName(name, `${at}.${field}[${index}]`, what))
  return [...errors, ...checkConfinement({ role, projects, virtualClusters }, at)]
}

/** Only `platform-cli` covers objects of projects, the ProjectSecrets. This API has no objects in virtual clusters. */
function checkConfinement({ role, projects, virtualClusters }: Required<ScopeRole>, at: string): FieldError[] {
  if (role === 'platform-cli')
    return virtualClusters.length && !projects.length
      ? [
          invalidValue(
            `${at}.virtualClusters`,
            virtualClusters,
            'platform-cli covers no requests in virtual clusters: name projects, or remove the field',
          ),
        ]
      : []
  if (role !== 'agent' && role !== 'metrics-reader') return []
  return (
    [
      ['projects', projects, 'projects'],
      ['virtualClusters', virtualClusters, 'virtual clusters'],
    ] as const
  ).flatMap(([field, names, what]) =>
    names.length
      ? [invalidValue(`${at}.${field}`, names, `${role} covers no requests in ${what}: remove the field`)]
      : [],
  )
}

/** An entry names one secret, without wildcards. */
function checkSecret(entry: ScopeSecret, at: string): FieldError[] {
  const { namespace = '', project = '', name = '' } = entry
  const errors: FieldError[] = []
  if (!name) errors.push(required(`${at}.name`, 'the name of one secret'))
  if (!namespace === !project)
    errors.push(
      invalidValue(at, entry, 'must have a namespace for a SharedSecret, or a project for a ProjectSecret, not both'),
    )
  for (const [key, value] of Object.entries({ namespace, project, name }))
    if (value && !isTargetName(value))
      errors.push(invalidValue(`${at}.${key}`, value, 'must be one name of lower-case letters, digits, - and .'))
  if (project && isTargetName(project) && dnsLabel(`p-${project}`).length)
    errors.push(
      invalidValue(
        `${at}.project`,
        project,
        'no such project can have secrets: p-<project> must be the name of a namespace',
      ),
    )
  return errors
}
