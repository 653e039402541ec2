// What the schema cannot say of a scope: rules that contradict themselves (SPEC §2.8.1).

import type { ScopeRule } from '../api/caller.ts'
import { type FieldError, invalidValue, isEnough, required } from '../api/errors.ts'
import { isPathPattern } from './rbac.ts'

export function checkScope(
  scope: { readonly rules?: readonly ScopeRule[] | undefined } | undefined,
  path = 'spec.scope',
): FieldError[] {
  const errors: FieldError[] = []
  for (const [index, rule] of (scope?.rules ?? []).entries()) {
    if (isEnough(errors)) break
    const at = `${path}.rules[${index}]`
    for (const url of rule.nonResourceURLs ?? [])
      if (!isPathPattern(url) && !isEnough(errors))
        errors.push(
          invalidValue(`${at}.nonResourceURLs`, url, 'a wildcard stands only for the whole last step, as in /logs/*'),
        )
    for (const [place, one] of (rule.resources ?? []).entries())
      if (!isEnough(errors)) errors.push(...checkResources(one, `${at}.resources[${place}]`))
  }
  return errors
}

type Resources = NonNullable<ScopeRule['resources']>[number]

function checkResources({ resources = [], resourceNames = [] }: Resources, at: string): FieldError[] {
  const errors: FieldError[] = []
  if (resourceNames.length && resources.length === 0)
    errors.push(required(`${at}.resources`, 'resourceNames need resources to belong to'))
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

/** The patterns with a wildcard that take in an entry; looked up, for there may be as many entries as a body holds. */
function wildcardsOver(one: string): string[] {
  const [kind, sub] = one.split('/')
  return sub === undefined ? ['*'] : ['*', `*/${sub}`, `${kind}/*`, '*/*']
}
