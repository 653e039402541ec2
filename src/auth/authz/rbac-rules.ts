// Indexes RBAC rules: whether one of them allows a request, or covers another rule. Pure; the semantics of Kubernetes (D27), and `teams/*`.

import type { Question } from '../../api/kind.ts'
import type { Target } from '../../api/permissions.ts'
import type { PolicyRule } from '../../kinds/policy-rule.ts'

export type { PolicyRule }

/** Rules with their source, indexed by resource and by resource name. */
export type RuleIndex<T> = {
  /** `verb` replaces that of the question. */
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

/** Rules that share a resource or a name. Long lists are grouped further when they are first compared. */
type Group<T> = { readonly rules: Sourced<T>[]; byWord?: ReadonlyMap<string, readonly Sourced<T>[]> }

export function indexRules<T>(rules: readonly Sourced<T>[]): RuleIndex<T> {
  /** Rules for every name, by resource. */
  const open = new Map<string, Group<T>>()
  /** Rules for single names, by name. Most names have one rule. An index by resource and name would have their product. */
  const named = new Map<string, Sourced<T> | Group<T>>()
  const forPaths = rules.filter(({ rule }) => rule.nonResourceURLs?.length)
  for (const one of rules) {
    const { resources, resourceNames } = one.rule
    if (resourceNames?.length) for (const name of new Set(resourceNames)) addNamed(named, name, one)
    else
      for (const word of new Set(resources)) {
        const there = open.get(word)
        if (there) there.rules.push(one)
        else open.set(word, { rules: [one] })
      }
  }
  /** The rules for a name that can be about a resource. */
  const ofName = (name: string | undefined, word: string): readonly Sourced<T>[] => {
    const there = name === undefined ? undefined : named.get(name)
    if (there === undefined) return []
    if (!('rules' in there)) return [there]
    if (there.rules.length <= long) return there.rules
    there.byWord ??= groupBy(there.rules, rule => rule.resources)
    return there.byWord.get(word) ?? []
  }
  const lookUp = (word: string, verb: string, { group, name }: Target): Sourced<T> | undefined =>
    firstOf(open.get(word)?.rules ?? [], verb, group) ??
    ofName(name, word).find(({ rule }) => has(rule.resources, word) && isAllowed(rule, verb, group))
  return {
    find(question, verb = question.verb) {
      if ('path' in question)
        return forPaths.find(
          ({ rule }) => hasOrAll(rule.verbs, verb) && rule.nonResourceURLs?.some(url => coversPath(url, question.path)),
        )
      const { target } = question
      const { resource, subresource } = target
      if (subresource === undefined) return lookUp(resource, verb, target) ?? lookUp('*', verb, target)
      for (const word of wordsFor(resource, subresource)) {
        const found = lookUp(word, verb, target)
        if (found) return found
      }
      return undefined
    },
    covers(permission) {
      const { verb } = permission
      if ('url' in permission)
        return forPaths.some(({ rule }) => hasOrAll(rule.verbs, verb) && coversUrl(rule, permission.url))
      const { group, resource, name } = permission
      // A subresource may contain slashes, as in userextras/example.com/key.
      const slash = resource.indexOf('/')
      const words = slash < 0 ? [resource, '*'] : wordsFor(resource.slice(0, slash), resource.slice(slash + 1))
      return words.some(
        word =>
          comparable(open.get(word), group).some(list => firstOf(list, verb, group)) ||
          ofName(name, word).some(({ rule }) => has(rule.resources, word) && isAllowed(rule, verb, group)),
      )
    },
    coversRule(wanted) {
      if (wanted.nonResourceURLs?.length) return forPaths.some(({ rule }) => coversRule(rule, wanted))
      // A rule that covers all resources also covers the first one.
      const [resource = ''] = wanted.resources ?? []
      const [group = ''] = wanted.apiGroups ?? []
      const [name] = wanted.resourceNames ?? []
      return [resource, '*'].some(word =>
        [...comparable(open.get(word), group), ofName(name, word)].some(list =>
          list.some(({ rule }) => has(rule.resources, word) && coversRule(rule, wanted)),
        ),
      )
    },
  }
}

/**
 * The words of rules that include a subresource. `teams/*` is every subresource of teams, unlike in Kubernetes
 * (docs/decisions/0020). A rule for every subresource of every kind is `*`; the word `* /*` (without the blank) includes nothing.
 */
function wordsFor(resource: string, subresource: string): readonly string[] {
  const own = `${resource}/${subresource}`
  if (resource === '*') return [own, '*']
  return subresource === '*' ? [own, '*'] : [own, '*', `*/${subresource}`, `${resource}/*`]
}

/** A longer list of rules for one name is grouped by resource. */
const long = 64

function addNamed<T>(named: Map<string, Sourced<T> | Group<T>>, name: string, one: Sourced<T>): void {
  const there = named.get(name)
  if (there === undefined) named.set(name, one)
  else if ('rules' in there) there.rules.push(one)
  else named.set(name, { rules: [there, one] })
}

/** The rules that can cover a permission in this group. A role can have very many rules that differ by their group. */
function comparable<T>(there: Group<T> | undefined, group: string): readonly (readonly Sourced<T>[])[] {
  if (there === undefined) return []
  if (there.rules.length <= short) return [there.rules]
  there.byWord ??= groupBy(there.rules, rule => rule.apiGroups)
  return [there.byWord.get(group) ?? [], there.byWord.get('*') ?? []]
}

function groupBy<T>(
  rules: readonly Sourced<T>[],
  wordsOf: (rule: PolicyRule) => readonly string[] | undefined,
): Map<string, Sourced<T>[]> {
  const found = new Map<string, Sourced<T>[]>()
  for (const one of rules)
    for (const word of new Set(wordsOf(one.rule))) {
      const list = found.get(word)
      if (list) list.push(one)
      else found.set(word, [one])
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
  for (const one of list) if (isAllowed(one.rule, verb, group)) return one
  return undefined
}

const isAllowed = ({ verbs, apiGroups }: PolicyRule, verb: string, group: string) =>
  hasOrAll(verbs, verb) && hasOrAll(apiGroups, group)

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

/** A rule in the format of Kubernetes' errors. */
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
