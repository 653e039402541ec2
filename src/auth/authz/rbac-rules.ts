// RBAC rules, compiled: does one allow an act, and does a set of them cover another rule. Pure; Kubernetes' semantics (D27).

import type { Question } from '../../api/kind.ts'
import type { Target } from '../../api/permissions.ts'
import type { PolicyRule } from '../../kinds/policy-rule.ts'

export type { PolicyRule }

/** Rules with what they come from, found by the resource they name and the name they are confined to. */
export type RuleIndex<T> = {
  /** `verb` in place of the question's own. */
  find(question: Question, verb?: string): Sourced<T> | undefined
}
export type Sourced<T> = { readonly rule: PolicyRule; readonly from: T }

const has = (list: readonly string[] | undefined, word: string) => list?.includes(word) === true
const hasOrAll = (list: readonly string[] | undefined, word: string) => has(list, '*') || has(list, word)

/** The rules about one word: those for every name, and those for some. */
type Candidates<T> = { readonly open: Sourced<T>[]; readonly named: Map<string, Sourced<T>[]> }

export function indexRules<T>(rules: readonly Sourced<T>[]): RuleIndex<T> {
  const byWord = new Map<string, Candidates<T>>()
  // A role that is held through many bindings is looked at once.
  const once = [...new Map([...rules].reverse().map(one => [one.rule, one])).values()].reverse()
  const forPaths = once.filter(({ rule }) => rule.nonResourceURLs?.length)
  for (const one of once)
    for (const word of new Set(one.rule.resources)) {
      const there = byWord.get(word) ?? { open: [], named: new Map<string, Sourced<T>[]>() }
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
  }
}

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

/** Cuts a rule into its smallest parts, each of which one held rule must cover whole. */
function atoms(rule: PolicyRule): PolicyRule[] {
  const verbs = rule.verbs ?? []
  if (rule.nonResourceURLs?.length)
    return verbs.flatMap(verb => (rule.nonResourceURLs ?? []).map(url => ({ verbs: [verb], nonResourceURLs: [url] })))
  const names: (string[] | undefined)[] = rule.resourceNames?.length
    ? rule.resourceNames.map(name => [name])
    : [undefined]
  return verbs.flatMap(verb =>
    (rule.apiGroups ?? []).flatMap(group =>
      (rule.resources ?? []).flatMap(resource =>
        names.map(resourceNames => ({
          verbs: [verb],
          apiGroups: [group],
          resources: [resource],
          ...(resourceNames ? { resourceNames } : {}),
        })),
      ),
    ),
  )
}

/** Whether a held rule covers an atom whole: a wildcard is covered by a wildcard alone. */
function coversAtom(held: PolicyRule, atom: PolicyRule): boolean {
  if (!hasOrAll(held.verbs, atom.verbs?.[0] ?? '')) return false
  const [url] = atom.nonResourceURLs ?? []
  if (url !== undefined)
    return (
      held.nonResourceURLs?.some(
        pattern => coversPath(pattern, url) && (!url.endsWith('*') || pattern.endsWith('*')),
      ) === true
    )
  const [resource = ''] = atom.resources ?? []
  const [, sub] = resource.split('/')
  return (
    hasOrAll(held.apiGroups, atom.apiGroups?.[0] ?? '') &&
    (hasOrAll(held.resources, resource) || (sub !== undefined && has(held.resources, `*/${sub}`))) &&
    (!held.resourceNames?.length ||
      (atom.resourceNames !== undefined && has(held.resourceNames, atom.resourceNames[0] ?? '')))
  )
}

/** A rule stands for the product of its lists: beyond this it has to be held as it is, by one rule. */
const maxAtoms = 10_000

/** The parts of `wanted` that no rule of `held` covers; empty: all of it is held. */
export function missingRules(held: readonly PolicyRule[], wanted: readonly PolicyRule[]): readonly PolicyRule[] {
  return wanted.flatMap(rule => {
    if (held.some(one => coversRule(one, rule))) return []
    if (countAtoms(rule) > maxAtoms) return [rule]
    return atoms(rule).filter(atom => !held.some(one => coversAtom(one, atom)))
  })
}

const countAtoms = ({ verbs, apiGroups, resources, resourceNames, nonResourceURLs }: PolicyRule) =>
  nonResourceURLs?.length
    ? (verbs?.length ?? 0) * nonResourceURLs.length
    : (verbs?.length ?? 0) * (apiGroups?.length ?? 0) * (resources?.length ?? 0) * (resourceNames?.length || 1)

/** Whether one held rule covers every part of another: each list is looked through by itself. */
function coversRule(held: PolicyRule, wanted: PolicyRule): boolean {
  if (wanted.nonResourceURLs?.length || held.resourceNames?.length) return false
  const all = (words: readonly string[] | undefined, wide: readonly string[] | undefined) =>
    has(wide, '*') || words?.every(word => has(wide, word)) === true
  return all(wanted.verbs, held.verbs) && all(wanted.apiGroups, held.apiGroups) && all(wanted.resources, held.resources)
}

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
