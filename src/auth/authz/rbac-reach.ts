// Computes the objects of a resource that some roles allow. Filtered lists look only at these objects.

import type { Ref } from '../../api/object.ts'
import type { PolicyRule } from './rbac-rules.ts'

/** All objects, whole namespaces, names in every namespace, single objects. May contain more than the roles allow. */
export type Reach = {
  readonly all: boolean
  readonly namespaces: readonly string[]
  readonly names: readonly string[]
  readonly refs: readonly Ref[]
}

/** `namespace` '' is everywhere. */
type HeldRole = { readonly namespace: string; readonly parts: readonly (readonly PolicyRule[])[] }

/** The objects that one role allows, in each namespace where it is bound: everything, or these names. */
type RoleReach = 'all' | ReadonlySet<string>

/** The roles of a user can list very many names. Beyond this number, lists look at whole namespaces. */
const maxNames = 1000

/** `key`: identifies the resource and verbs that `allows` tests, for the cache. */
export type ReachQuery = { readonly key: string; readonly allows: (rule: PolicyRule) => boolean }

/** Roles are never changed in place. */
const cache = new WeakMap<readonly PolicyRule[], Map<string, RoleReach>>()

export function reachOf(grants: Iterable<HeldRole>, query: ReachQuery): Reach {
  const roles = new Map<string, Set<readonly PolicyRule[]>>()
  for (const { namespace, parts } of grants) {
    const there = roles.get(namespace) ?? new Set()
    roles.set(namespace, there)
    for (const rules of parts) there.add(rules)
  }
  // Names everywhere come first. They include the same names of a namespace.
  const names = namesOf(roles.get('') ?? [], query, new Set())
  if (names === 'all') return everything
  const namespaces: string[] = []
  const refs: Ref[] = []
  for (const [namespace, bound] of roles) {
    if (namespace === '') continue
    const own = namesOf(bound, query, names)
    if (own === 'all' || refs.length + own.size > maxNames) namespaces.push(namespace)
    else for (const name of own) refs.push({ namespace, name })
  }
  return { all: false, namespaces, names: [...names], refs }
}

const everything: Reach = { all: true, namespaces: [], names: [], refs: [] }

/** The names that roles of one namespace allow, without `known`. Also `all` if there are too many names. */
function namesOf(roles: Iterable<readonly PolicyRule[]>, query: ReachQuery, known: ReadonlySet<string>): RoleReach {
  const found = new Set<string>()
  for (const rules of roles) {
    const names = roleReach(rules, query)
    if (names === 'all') return 'all'
    for (const name of names) if (!known.has(name)) found.add(name)
    if (found.size > maxNames) return 'all'
  }
  return found
}

function roleReach(rules: readonly PolicyRule[], { key, allows }: ReachQuery): RoleReach {
  const ofRole = cache.get(rules) ?? new Map<string, RoleReach>()
  cache.set(rules, ofRole)
  const cached = ofRole.get(key)
  if (cached) return cached
  const reach = computeReach(rules.filter(allows))
  ofRole.set(key, reach)
  return reach
}

function computeReach(rules: readonly PolicyRule[]): RoleReach {
  const names = new Set<string>()
  for (const { resourceNames } of rules) {
    if (!resourceNames?.length) return 'all'
    for (const name of resourceNames) names.add(name)
    if (names.size > maxNames) return 'all'
  }
  return names
}
