// Which objects of a resource a set of roles allows something on. rbac.ts answers with it, filtered lists are found by it.

import type { Ref } from '../../api/object.ts'
import type { PolicyRule } from './rbac-rules.ts'

/** All objects, whole namespaces, names in every namespace, single objects. */
export type Reach = {
  readonly all: boolean
  readonly namespaces: readonly string[]
  readonly names: readonly string[]
  readonly refs: readonly Ref[]
}

/** `namespace` '' is everywhere. */
type NamespaceRules = { readonly namespace: string; readonly rules: readonly PolicyRule[] }

export function reachOf(grants: Iterable<NamespaceRules>, allows: (rule: PolicyRule) => boolean): Reach {
  const namespaces = new Set<string>()
  const names = new Set<string>()
  const refs: Ref[] = []
  let all = false
  for (const { namespace, rules } of grants)
    for (const rule of rules) {
      if (!allows(rule)) continue
      const { resourceNames = [] } = rule
      if (resourceNames.length === 0 && namespace === '') all = true
      else if (resourceNames.length === 0) namespaces.add(namespace)
      else if (namespace === '') for (const name of resourceNames) names.add(name)
      else for (const name of resourceNames) refs.push({ namespace, name })
    }
  return { all, namespaces: [...namespaces], names: [...names], refs }
}
