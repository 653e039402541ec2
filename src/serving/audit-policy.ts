// Kubernetes' audit Policy, compiled so that the decision None costs almost nothing.

import type { Question } from '../api/kind.ts'

export const levels = ['None', 'Metadata', 'Request', 'RequestResponse'] as const
export const stages = ['RequestReceived', 'ResponseStarted', 'ResponseComplete', 'Panic'] as const
export type Level = (typeof levels)[number]
export type Stage = (typeof stages)[number]

export type GroupResources = {
  readonly group?: string
  readonly resources?: readonly string[]
  readonly resourceNames?: readonly string[]
}

/** A request matches if every non-empty list matches. */
export type PolicyRule = {
  readonly level: Level
  readonly users?: readonly string[]
  readonly userGroups?: readonly string[]
  readonly verbs?: readonly string[]
  readonly resources?: readonly GroupResources[]
  readonly namespaces?: readonly string[]
  readonly nonResourceURLs?: readonly string[]
  readonly omitStages?: readonly Stage[]
  readonly omitManagedFields?: boolean
}

/** audit.k8s.io/v1 Policy: the first matching rule decides. Without one, the level is None. */
export type Policy = {
  readonly rules: readonly PolicyRule[]
  readonly omitStages?: readonly Stage[]
  readonly omitManagedFields?: boolean
}

export type Decision = {
  readonly level: Level
  readonly omitStages: ReadonlySet<Stage>
  readonly omitManagedFields: boolean
}

/** undefined: the client was not authenticated. */
export type Requester = { readonly username: string; readonly groups: readonly string[] } | undefined
export type Decide = (question: Question, requester: Requester) => Decision

const ours = 'management.platform.sh'

/**
 * All writes, and reads of secrets. Reviews are creates that write nothing. Denials and issuance need no rule: audit.ts always
 * records them.
 */
export const defaultPolicy: Policy = {
  omitStages: ['RequestReceived'],
  rules: [
    {
      level: 'None',
      resources: [
        { group: 'authorization.k8s.io' },
        { group: 'authentication.k8s.io' },
        { group: ours, resources: ['accessexplanations', 'patchpreviews'] },
      ],
    },
    { level: 'Metadata', verbs: ['create', 'update', 'patch', 'delete', 'deletecollection'] },
    { level: 'Metadata', verbs: ['post'], nonResourceURLs: ['/auth/*'] },
    { level: 'Metadata', resources: [{ group: ours, resources: ['sharedsecrets/*', 'projectsecrets/*'] }] },
  ],
}

/**
 * A rule that matches a request's target, with the conditions that are still to be checked: user, namespace and name. undefined: no
 * condition.
 */
type Candidate = {
  readonly decision: Decision
  readonly users: ReadonlySet<string> | undefined
  readonly groups: ReadonlySet<string> | undefined
  readonly namespaces: ReadonlySet<string> | undefined
  readonly names: ReadonlySet<string> | undefined
}

export function compilePolicy(policy: Policy): Decide {
  const decisions = policy.rules.map(rule => decisionOf(policy, rule))
  const otherwise = decisionOf(policy, { level: 'None' })
  const candidateCache = openCandidateCache()
  /** A cache for gets, whose question objects repeat all day. */
  const byQuestion = new WeakMap<Question, readonly Candidate[]>()
  const candidatesAt = (question: Question): readonly Candidate[] => {
    if (question.verb !== 'get') return candidatesOf(question)
    const there = byQuestion.get(question)
    if (there) return there
    const found = candidatesOf(question)
    byQuestion.set(question, found)
    return found
  }
  const candidatesOf = (question: Question): readonly Candidate[] => {
    const known = candidateCache.find(question)
    if (known) return known
    const found = policy.rules.flatMap((rule, index) => candidateOf(rule, question, decisions[index] as Decision) ?? [])
    const last = found.findIndex(isUnconditional)
    const kept = last === -1 ? found : found.slice(0, last + 1)
    candidateCache.keep(question, kept)
    return kept
  }
  return (question, requester) => {
    for (const candidate of candidatesAt(question)) if (fits(candidate, question, requester)) return candidate.decision
    return otherwise
  }
}

type Branch<T> = Map<string, T>
const maxCached = 4096
/** Not a valid group name, so a path never matches a resource. */
const noGroup = '/'

/**
 * Candidates by the parts of a request that do not depend on user, namespace and name. Clients choose these parts, so the cache is
 * bounded.
 */
function openCandidateCache() {
  const verbs: Branch<Branch<Branch<Branch<readonly Candidate[]>>>> = new Map()
  let size = 0
  return {
    // Nested maps: building one key from the four words would cost more than the rest.
    find(question: Question): readonly Candidate[] | undefined {
      const verb = verbs.get(question.verb)
      if ('path' in question) return verb?.get(question.path)?.get(noGroup)?.get('')
      const { group, resource, subresource = '' } = question.target
      return verb?.get(resource)?.get(group)?.get(subresource)
    },
    keep(question: Question, candidates: readonly Candidate[]): void {
      const isPath = 'path' in question
      const {
        group,
        resource,
        subresource = '',
      } = isPath ? { group: noGroup, resource: question.path } : question.target
      if (group.length + resource.length + subresource.length > 512) return
      if (size++ >= maxCached) {
        verbs.clear()
        size = 1
      }
      const branch = below(below(below(verbs, question.verb), resource), group)
      branch.set(subresource, candidates)
    },
  }
}

function below<T>(map: Branch<Branch<T>>, key: string): Branch<T> {
  const there = map.get(key) ?? new Map<string, T>()
  map.set(key, there)
  return there
}

function decisionOf(policy: Policy, rule: PolicyRule): Decision {
  return {
    level: rule.level,
    omitStages: new Set([...(policy.omitStages ?? []), ...(rule.omitStages ?? [])]),
    omitManagedFields: rule.omitManagedFields ?? policy.omitManagedFields ?? false,
  }
}

function candidateOf(rule: PolicyRule, question: Question, decision: Decision): Candidate | undefined {
  if (rule.verbs?.length && !rule.verbs.includes(question.verb)) return undefined
  const isAboutResources = Boolean(rule.namespaces?.length || rule.resources?.length)
  const requester = { decision, users: setOf(rule.users), groups: setOf(rule.userGroups) }
  if ('path' in question) {
    if (isAboutResources) return undefined
    if (rule.nonResourceURLs?.length && !rule.nonResourceURLs.some(url => isBelow(question.path, url))) return undefined
    return { ...requester, namespaces: undefined, names: undefined }
  }
  if (!isAboutResources && rule.nonResourceURLs?.length) return undefined
  const names = rule.resources?.length ? namesAt(rule.resources, question.target) : 'any'
  if (names === 'none') return undefined
  return { ...requester, namespaces: setOf(rule.namespaces), names: names === 'any' ? undefined : names }
}

const setOf = (list: readonly string[] | undefined) => (list?.length ? new Set(list) : undefined)

const isBelow = (path: string, url: string) =>
  url === '*' || url === path || (url.endsWith('*') && path.startsWith(url.replace(/\*+$/, '')))

type ResourceTarget = { readonly group: string; readonly resource: string; readonly subresource?: string }

/** The names of a resource that the entries of a rule cover. */
function namesAt(entries: readonly GroupResources[], target: ResourceTarget): ReadonlySet<string> | 'any' | 'none' {
  const names = new Set<string>()
  for (const { group = '', resources = [], resourceNames = [] } of entries) {
    if (group !== target.group) continue
    if (resources.length === 0) return 'any'
    if (!resources.some(one => isResource(one, target))) continue
    if (resourceNames.length === 0) return 'any'
    for (const name of resourceNames) names.add(name)
  }
  return names.size ? names : 'none'
}

/** `pods`, `pods/log`, `*` for all, `*\/log` for that subresource of all. `pods/*` is pods and all of its subresources, as in Kubernetes. */
function isResource(pattern: string, { resource, subresource = '' }: ResourceTarget): boolean {
  if (pattern === '*' || pattern === (subresource ? `${resource}/${subresource}` : resource)) return true
  if (subresource && pattern === `*/${subresource}`) return true
  return pattern === `${resource}/*`
}

const isUnconditional = ({ users, groups, namespaces, names }: Candidate) => !(users || groups || namespaces || names)

function fits({ users, groups, namespaces, names }: Candidate, question: Question, requester: Requester): boolean {
  if (users && !(requester && users.has(requester.username))) return false
  if (groups && !requester?.groups.some(group => groups.has(group))) return false
  if (!namespaces && !names) return true
  if ('path' in question) return false
  const { namespace, name = '' } = question.target
  return (!namespaces || namespaces.has(namespace)) && (!names || names.has(name))
}
