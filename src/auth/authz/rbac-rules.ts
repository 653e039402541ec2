// Indexes RBAC rules: whether one of them allows a request, or covers another rule. Pure; the semantics of Kubernetes (D27).

import type { Question } from '../../api/kind.ts'
import type { Target } from '../../api/permissions.ts'
import type { PolicyRule } from '../../kinds/policy-rule.ts'

export type { PolicyRule }

/** Rules with what they come from, found by the resource they name and the name they are confined to. */
export type RuleIndex<T> = {
  /** `verb` in place of the question's own. */
  find(question: Question, verb?: string): Sourced<T> | undefined
  /** Whether one rule covers a permission. A wildcard is covered by a wildcard only. */
  covers(permission: Permission): boolean
  /** Whether one rule covers every permission of another rule, by comparing each list. */
  coversRule(rule: PolicyRule): boolean
}
export type Sourced<T> = { readonly rule: PolicyRule; readonly from: T }

/** The smallest part of a rule. */
export type Permission =
  | { readonly verb: string; readonly group: string; readonly resource: string; readonly name: string | undefined }
  | { readonly verb: string; readonly url: string }

/** Sets of lists that are long enough to make a set quicker. Roles are never changed in place. */
const sets = new WeakMap<readonly string[], ReadonlySet<string>>()
const short = 16

function has(list: readonly string[] | undefined, word: string): boolean {
  if (list === undefined) return false
  if (list.length <= short) return list.includes(word)
  const known = sets.get(list)
  if (known) return known.has(word)
  const made = new Set(list)
  sets.set(list, made)
  return made.has(word)
}
const hasOrAll = (list: readonly string[] | undefined, word: string) => has(list, '*') || has(list, word)

/** The rules about one word: those for every name, and those for some. */
type Candidates<T> = {
  readonly open: Sourced<T>[]
  readonly named: Map<string, Sourced<T>[]>
  /** The rules for every name by API group. Set by the first comparison. */
  openByGroup?: ReadonlyMap<string, readonly Sourced<T>[]>
}

export function indexRules<T>(rules: readonly Sourced<T>[]): RuleIndex<T> {
  const byWord = new Map<string, Candidates<T>>()
  // A role that is held through many bindings is looked at once.
  const once = [...new Map([...rules].reverse().map(one => [one.rule, one])).values()].reverse()
  const forPaths = once.filter(({ rule }) => rule.nonResourceURLs?.length)
  for (const one of once)
    for (const word of new Set(one.rule.resources)) {
      const there: Candidates<T> = byWord.get(word) ?? { open: [], named: new Map() }
      byWord.set(word, there)
      if (!one.rule.resourceNames?.length) there.open.push(one)
      for (const name of new Set(one.rule.resourceNames)) {
        const ofName = there.named.get(name)
        if (ofName) ofName.push(one)
        else there.named.set(name, [one])
      }
    }
  const lookUp = (word: string, verb: string, { group, name }: Target): Sourced<T> | undefined => {
    const there = byWord.get(word)
    if (there === undefined) return undefined
    const named = name === undefined || there.named.size === 0 ? undefined : there.named.get(name)
    return firstOf(there.open, verb, group) ?? (named && firstOf(named, verb, group))
  }
  return {
    find(question, verb = question.verb) {
      if ('path' in question)
        return forPaths.find(
          ({ rule }) => hasOrAll(rule.verbs, verb) && rule.nonResourceURLs?.some(url => coversPath(url, question.path)),
        )
      const { target } = question
      const { resource, subresource } = target
      if (subresource === undefined) return lookUp(resource, verb, target) ?? lookUp('*', verb, target)
      // Every subresource: `sharedsecrets/*` is a literal word in a rule and matches none of them, as in Kubernetes.
      if (subresource === '*') return lookUp('*', verb, target)
      return (
        lookUp(`${resource}/${subresource}`, verb, target) ??
        lookUp('*', verb, target) ??
        lookUp(`*/${subresource}`, verb, target)
      )
    },
    covers(permission) {
      const { verb } = permission
      if ('url' in permission)
        return forPaths.some(({ rule }) => hasOrAll(rule.verbs, verb) && coversUrl(rule, permission.url))
      const { group, resource, name } = permission
      const [, sub] = resource.split('/')
      const words = sub === undefined ? [resource, '*'] : [resource, '*', `*/${sub}`]
      return words.some(word => comparable(byWord.get(word), group, name).some(list => firstOf(list, verb, group)))
    },
    coversRule(wanted) {
      if (wanted.nonResourceURLs?.length) return forPaths.some(({ rule }) => coversRule(rule, wanted))
      // A rule that covers all resources also covers the first one.
      const [resource = ''] = wanted.resources ?? []
      const [group = ''] = wanted.apiGroups ?? []
      const [name] = wanted.resourceNames ?? []
      return [resource, '*'].some(word =>
        comparable(byWord.get(word), group, name).some(list => list.some(({ rule }) => coversRule(rule, wanted))),
      )
    },
  }
}

/** The rules that can cover a permission in this group. A role can have very many rules that differ by their group. */
function comparable<T>(
  there: Candidates<T> | undefined,
  group: string,
  name: string | undefined,
): readonly (readonly Sourced<T>[])[] {
  if (there === undefined) return []
  const named = (name !== undefined && there.named.get(name)) || []
  if (there.open.length <= short) return [there.open, named]
  there.openByGroup ??= byGroup(there.open)
  return [there.openByGroup.get(group) ?? [], there.openByGroup.get('*') ?? [], named]
}

function byGroup<T>(rules: readonly Sourced<T>[]): Map<string, Sourced<T>[]> {
  const found = new Map<string, Sourced<T>[]>()
  for (const one of rules)
    for (const group of new Set(one.rule.apiGroups)) {
      const list = found.get(group)
      if (list) list.push(one)
      else found.set(group, [one])
    }
  return found
}

function coversRule(held: PolicyRule, wanted: PolicyRule): boolean {
  const all = (words: readonly string[] | undefined, wide: readonly string[] | undefined) =>
    has(wide, '*') || words?.every(word => has(wide, word)) === true
  if (!all(wanted.verbs, held.verbs)) return false
  if (wanted.nonResourceURLs?.length) return wanted.nonResourceURLs.every(url => coversUrl(held, url))
  if (!all(wanted.apiGroups, held.apiGroups) || !all(wanted.resources, held.resources)) return false
  const { resourceNames: names } = held
  return !names?.length || (wanted.resourceNames?.length ? wanted.resourceNames.every(name => has(names, name)) : false)
}

const coversUrl = ({ nonResourceURLs }: PolicyRule, url: string): boolean =>
  has(nonResourceURLs, url) ||
  nonResourceURLs?.some(pattern => coversPath(pattern, url) && (!url.endsWith('*') || pattern.endsWith('*'))) === true

function firstOf<T>(list: readonly Sourced<T>[], verb: string, group: string): Sourced<T> | undefined {
  for (const one of list) if (hasOrAll(one.rule.verbs, verb) && hasOrAll(one.rule.apiGroups, group)) return one
  return undefined
}

/** Whether a rule allows one of these verbs on a resource, on some or all of its names. */
export function isAbout(
  rule: PolicyRule,
  { group, resource }: Pick<Target, 'group' | 'resource'>,
  verbs: readonly string[],
) {
  return (
    hasOrAll(rule.resources, resource) &&
    hasOrAll(rule.apiGroups, group) &&
    verbs.some(verb => hasOrAll(rule.verbs, verb))
  )
}

const coversPath = (pattern: string, path: string) =>
  pattern === '*' || pattern === path || (pattern.endsWith('/*') && path.startsWith(pattern.slice(0, -1)))

/** A rule as Kubernetes prints it in a refusal. */
export function printRule(rule: PolicyRule): string {
  const list = (name: string, words: readonly string[] | undefined) =>
    words?.length ? [`${name}:[${words.map(word => JSON.stringify(word)).join(' ')}]`] : []
  return `{${[
    ...list('APIGroups', rule.apiGroups),
    ...list('Resources', rule.resources),
    ...list('ResourceNames', rule.resourceNames),
    ...list('NonResourceURLs', rule.nonResourceURLs),
    ...list('Verbs', rule.verbs),
  ].join(', ')}}`
}
