// The rules of a role that the scope of a key leaves, for SelfSubjectRulesReview (D25). The authorizer decides requests by itself.

import type { Scope, ScopeRule } from '../../api/caller.ts'
import type { PolicyRule } from './rbac-rules.ts'
import { rolesOf } from './scope.ts'
import { aboutOf, covers, isMatchable } from './scope-rules.ts'

type ScopedRules = {
  readonly rules: readonly PolicyRule[]
  /** Permissions that rules cannot express. */
  readonly notes: readonly string[]
  /** The list was too long. */
  readonly isPartial: boolean
}

type Limits = { readonly namespace: string; readonly maxWords: number }

/** Each rule that is held, within each rule of the scope. */
export function withinScope(held: readonly PolicyRule[], scope: Scope, { namespace, maxWords }: Limits): ScopedRules {
  const { allowed, notes } = rulesOfScope(scope, namespace)
  const found = new Map<string, PolicyRule>()
  const comparison: Comparison = { left: maxWork, lists: new Map() }
  // Both lists can be long, so their product is limited.
  let left = maxWords
  for (const outer of allowed)
    for (const rule of held) {
      const both = intersect(rule, outer, comparison)
      left -= 1 + (both ? wordsIn(both) : 0)
      if (left < 0 || comparison.left < 0) return { rules: [...found.values()], notes, isPartial: true }
      if (both) found.set(JSON.stringify(both), both)
    }
  return { rules: [...found.values()], notes, isPartial: false }
}

/** Words to read and pairs of words to compare for one review. That many take a few milliseconds. */
const maxWork = 100_000

export const wordsIn = ({ verbs, apiGroups, resources, resourceNames, nonResourceURLs }: PolicyRule) =>
  [verbs, apiGroups, resources, resourceNames, nonResourceURLs].reduce((sum, list) => sum + (list?.length ?? 0), 0)

const group = 'management.platform.sh'
const reads = ['get', 'list', 'watch']
const everyKey: readonly PolicyRule[] = [
  { verbs: ['create'], apiGroups: [group], resources: ['directclusterendpointtokens'] },
  {
    verbs: ['create'],
    apiGroups: ['authorization.k8s.io'],
    resources: ['selfsubjectaccessreviews', 'selfsubjectrulesreviews'],
  },
  { verbs: ['create'], apiGroups: ['authentication.k8s.io'], resources: ['selfsubjectreviews'] },
  {
    verbs: ['get'],
    nonResourceURLs: ['/', '/api', '/api/*', '/apis', '/apis/*', '/openapi', '/openapi/*', '/version'],
  },
]

function rulesOfScope(scope: Scope, namespace: string): { allowed: PolicyRule[]; notes: string[] } {
  const notes = new Set<string>()
  const allowed: PolicyRule[] = [...everyKey]
  const project = namespace.startsWith('p-') ? namespace.slice(2) : undefined
  const isProject = (name: string | undefined) => project !== undefined && covers(name, project)
  for (const entry of scope.projects ?? [])
    if (isProject(entry.project))
      allowed.push({
        verbs: entry.readOnly ? reads : ['*'],
        apiGroups: [group],
        resources: ['projectsecrets', 'projectsecrets/*'],
      })
  for (const secret of scope.secrets ?? []) {
    if (!secret.name || !secret.namespace === !secret.project) continue
    const isShared = Boolean(secret.namespace) && secret.namespace === namespace
    if (isShared || (!secret.namespace && secret.project === project))
      allowed.push({
        verbs: ['get'],
        apiGroups: [group],
        resources: [isShared ? 'sharedsecrets' : 'projectsecrets'],
        resourceNames: [secret.name],
      })
  }
  for (const { role = '', projects = [], virtualClusters = [] } of rolesOf(scope)) {
    const isConfined = projects.length + virtualClusters.length > 0
    if (role === 'platform-cli' && (!isConfined || projects.some(isProject)))
      notes.add('the scope role platform-cli also allows to read metadata')
    if (!isConfined) allowed.push(...(rulesOfRoles.get(role) ?? []))
  }
  for (const rule of scope.rules ?? []) allowed.push(...rulesOfRule(rule, namespace, notes))
  return { allowed, notes: [...notes] }
}

const rulesOfRoles: ReadonlyMap<string, readonly PolicyRule[]> = new Map([
  ['metrics-reader', [{ verbs: ['get'], nonResourceURLs: ['/metrics'] }]],
  [
    'agent',
    [
      { verbs: ['create'], apiGroups: ['authentication.k8s.io'], resources: ['tokenreviews'] },
      { verbs: ['create'], apiGroups: [group], resources: ['accesskeyactivities'] },
      { verbs: ['list', 'watch'], apiGroups: [group], resources: ['tokenrevocations'] },
    ],
  ],
])

function* rulesOfRule(rule: ScopeRule, namespace: string, notes: Set<string>): Generator<PolicyRule> {
  if (rule.cluster || !isMatchable(rule)) return
  if (rule.requestTargets?.length && !rule.requestTargets.includes('Management')) return
  const verbs = rule.verbs?.length ? [...rule.verbs] : ['*']
  const about = aboutOf(rule)
  if (about.paths || !about.resources)
    yield { verbs, nonResourceURLs: about.paths ? [...(rule.nonResourceURLs ?? [])] : ['*'] }
  if (about.paths && !about.resources) return
  if (rule.namespaces?.length && !rule.namespaces.includes(namespace)) {
    if (rule.namespaces.includes('')) notes.add('the scope also has rules for cluster-scoped resources')
    return
  }
  if (!rule.resources?.length) yield { verbs, apiGroups: ['*'], resources: ['*'] }
  for (const one of rule.resources ?? []) {
    // Names without resources never match.
    if (one.resourceNames?.length && !one.resources?.length) continue
    yield {
      verbs,
      apiGroups: [one.group ?? ''],
      resources: one.resources?.length ? [...one.resources] : ['*'],
      ...(one.resourceNames?.length ? { resourceNames: [...one.resourceNames] } : {}),
    }
  }
}

/** `left`: work that is left. Below zero, the result of a comparison is incomplete. */
type Comparison = { left: number; readonly lists: Map<readonly string[], Words> }

function intersect(one: PolicyRule, other: PolicyRule, comparison: Comparison): PolicyRule | undefined {
  // The short lists come first, because most pairs differ in their verbs or groups.
  const verbs = common(one.verbs, other.verbs, anyWord, comparison)
  if (!verbs.length) return undefined
  if (one.nonResourceURLs?.length || other.nonResourceURLs?.length) {
    const nonResourceURLs = common(one.nonResourceURLs, other.nonResourceURLs, anyPath, comparison)
    return nonResourceURLs.length ? { verbs, nonResourceURLs } : undefined
  }
  const apiGroups = common(one.apiGroups, other.apiGroups, anyWord, comparison)
  if (!apiGroups.length) return undefined
  const resources = common(one.resources, other.resources, anyResource, comparison)
  if (!resources.length) return undefined
  const [names = [], others = []] = [one.resourceNames, other.resourceNames]
  if (!names.length && !others.length) return { verbs, apiGroups, resources }
  const resourceNames =
    names.length && others.length ? common(names, others, oneName, comparison) : [...names, ...others]
  return resourceNames.length ? { verbs, apiGroups, resources, resourceNames } : undefined
}

/** How the words of a list match others. */
type Syntax = {
  /** `*` matches every word. */
  readonly hasStar: boolean
  /** Other words can match this one. */
  readonly isPattern: (word: string) => boolean
  readonly both: (one: Word, other: Word) => string | undefined
}

/** `kind` and `sub`: the parts of a resource with one slash. */
type Word = { readonly word: string; readonly kind?: string; readonly sub?: string }

/** A list that was read once, for the comparisons with many others. */
type Words = { readonly set: ReadonlySet<string>; readonly parts: readonly Word[]; readonly patterns: readonly Word[] }

function common(
  list: readonly string[] = [],
  others: readonly string[] = [],
  syntax: Syntax,
  comparison: Comparison,
): string[] {
  const spend = (work: number) => {
    comparison.left -= work
    return comparison.left >= 0
  }
  const read = (words: readonly string[]): Words | undefined => {
    const known = comparison.lists.get(words)
    if (known || !spend(words.length)) return known
    const parts = words.map(partsOf)
    const made = { set: new Set(words), parts, patterns: parts.filter(({ word }) => syntax.isPattern(word)) }
    comparison.lists.set(words, made)
    return made
  }
  const [one, other] = [read(list), read(others)]
  if (!one || !other) return []
  // A wildcard leaves the other list as it is, however long.
  if (syntax.hasStar && (one.set.has('*') || other.set.has('*'))) {
    const kept = one.set.has('*') ? others : list
    return spend(kept.length) ? [...kept] : []
  }
  const [short, long] = one.set.size < other.set.size ? [one.set, other.set] : [other.set, one.set]
  const pairs = one.patterns.length * other.parts.length + other.patterns.length * one.parts.length
  if (!spend(short.size + pairs)) return []
  const found = new Set<string>()
  for (const word of short) if (long.has(word)) found.add(word)
  const compare = (patterns: readonly Word[], words: readonly Word[]) => {
    for (const pattern of patterns)
      for (const word of words) {
        const both = syntax.both(pattern, word)
        if (both !== undefined) found.add(both)
      }
  }
  compare(one.patterns, other.parts)
  compare(other.patterns, one.parts)
  return [...found]
}

function partsOf(word: string): Word {
  const at = word.indexOf('/')
  // More slashes have no meaning in a resource.
  if (at === -1 || word.includes('/', at + 1)) return { word }
  return { word, kind: word.slice(0, at), sub: word.slice(at + 1) }
}

const oneName: Syntax = { hasStar: false, isPattern: () => false, both: () => undefined }
const anyWord: Syntax = { ...oneName, hasStar: true }

const anyPath: Syntax = {
  hasStar: true,
  isPattern: path => path.endsWith('/*'),
  both: (pattern, { word }) => (word.startsWith(pattern.word.slice(0, -1)) ? word : undefined),
}

const anyResource: Syntax = {
  hasStar: true,
  isPattern: resource => resource.startsWith('*/') || resource.endsWith('/*'),
  both: (pattern, { kind, sub }) => {
    if (pattern.kind === undefined || pattern.sub === undefined || kind === undefined || sub === undefined)
      return undefined
    const narrower = (a: string, b: string) => (a === '*' ? b : b === '*' || a === b ? a : undefined)
    const [bothKind, bothSub] = [narrower(pattern.kind, kind), narrower(pattern.sub, sub)]
    return bothKind === undefined || bothSub === undefined ? undefined : `${bothKind}/${bothSub}`
  },
}
