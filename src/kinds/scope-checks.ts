// What the schema cannot say of a scope: rules that contradict themselves (SPEC §2.8.1).

import type { ScopeRule } from '../api/caller.ts'
import { type FieldError, invalidValue, required } from '../api/errors.ts'
import { isPathPattern } from './rbac.ts'

export function checkScope(
  scope: { readonly rules?: readonly ScopeRule[] | undefined } | undefined,
  path = 'spec.scope',
): FieldError[] {
  return (scope?.rules ?? []).flatMap((rule, index) => {
    const at = `${path}.rules[${index}]`
    return [
      ...(rule.nonResourceURLs ?? []).flatMap(url =>
        isPathPattern(url)
          ? []
          : [
              invalidValue(
                `${at}.nonResourceURLs`,
                url,
                'a wildcard stands only for the whole last step, as in /logs/*',
              ),
            ],
      ),
      ...(rule.resources ?? []).flatMap((one, place) => checkResources(one, `${at}.resources[${place}]`)),
    ]
  })
}

type Resources = NonNullable<ScopeRule['resources']>[number]

function checkResources({ resources = [], resourceNames = [] }: Resources, at: string): FieldError[] {
  const errors: FieldError[] = []
  if (resourceNames.length && resources.length === 0)
    errors.push(required(`${at}.resources`, 'resourceNames need resources to belong to'))
  for (const [index, one] of resources.entries())
    if (resources.some((other, place) => place !== index && overlaps(other, one)))
      errors.push(
        invalidValue(`${at}.resources`, one, 'is covered by another entry; entries with wildcards must not overlap'),
      )
  return errors
}

/** Whether a pattern with a wildcard takes in another entry. */
function overlaps(pattern: string, one: string): boolean {
  if (pattern === '*') return true
  const [kind, sub] = pattern.split('/')
  const [otherKind, otherSub] = one.split('/')
  if (kind !== '*' && sub !== '*') return false
  const meets = (wild: string | undefined, word: string | undefined) =>
    wild === word || (wild === '*' && word !== undefined)
  return meets(kind, otherKind) && meets(sub, otherSub)
}
