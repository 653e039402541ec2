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
  // Both lists can be long, so their product is limited.
  let left = maxWords
  for (const outer of allowed)
    for (const rule of held) {
      const both = intersect(rule, outer)
      left -= 1 + (both ? wordsIn(both) : 0)
      if (left < 0) return { rules: [...found.values()], notes, isPartial: true }
      if (both) found.set(JSON.stringify(both), both)
    }
  return { rules: [...found.values()], notes, isPartial: false }
}

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
    const isShared = secret.namespace !== undefined && secret.namespace === namespace
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

function intersect(one: PolicyRule, other: PolicyRule): PolicyRule | undefined {
  const verbs = common(one.verbs, other.verbs, commonWord)
  if (!verbs.length) return undefined
  if (one.nonResourceURLs?.length || other.nonResourceURLs?.length) {
    const nonResourceURLs = common(one.nonResourceURLs, other.nonResourceURLs, commonPath)
    return nonResourceURLs.length ? { verbs, nonResourceURLs } : undefined
  }
  const apiGroups = common(one.apiGroups, other.apiGroups, commonWord)
  const resources = common(one.resources, other.resources, commonResource)
  if (!apiGroups.length || !resources.length) return undefined
  const [names = [], others = []] = [one.resourceNames, other.resourceNames]
  if (!names.length && !others.length) return { verbs, apiGroups, resources }
  const known = new Set(others)
  const resourceNames = names.length && others.length ? names.filter(name => known.has(name)) : [...names, ...others]
  return resourceNames.length ? { verbs, apiGroups, resources, resourceNames } : undefined
}

type Common = (one: string, other: string) => string | undefined

function common(list: readonly string[] = [], others: readonly string[] = [], both: Common): string[] {
  // A wildcard leaves the other list as it is, however long.
  if (list.includes('*')) return [...others]
  if (others.includes('*')) return [...list]
  return [...new Set(list.flatMap(one => others.flatMap(other => both(one, other) ?? [])))]
}

const commonWord: Common = (one, other) => (one === other ? one : undefined)

const commonPath: Common = (one, other) => {
  const within = (pattern: string, path: string) => pattern.endsWith('/*') && path.startsWith(pattern.slice(0, -1))
  if (one === other || within(one, other)) return other
  return within(other, one) ? one : undefined
}

const commonResource: Common = (one, other) => {
  if (one === other) return one
  const [[kind = '', sub], [otherKind = '', otherSub]] = [one.split('/'), other.split('/')]
  if (sub === undefined || otherSub === undefined) return undefined
  const narrower = (a: string, b: string) => (a === '*' ? b : b === '*' || a === b ? a : undefined)
  const [bothKind, bothSub] = [narrower(kind, otherKind), narrower(sub, otherSub)]
  return bothKind === undefined || bothSub === undefined ? undefined : `${bothKind}/${bothSub}`
}
