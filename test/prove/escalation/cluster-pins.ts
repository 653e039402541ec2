// Which connected clusters the names in teams and project secrets mean, according to the model (D68).

import type { Known } from './model.ts'
import { kinds, type Obj } from './objects.ts'

export type ClusterPins = {
  /** For every stored change. `stored`: the uids that the server keeps in the object. */
  pin(
    next: Known,
    write: { readonly isRequest: boolean; readonly stored: { readonly [cluster: string]: unknown } },
  ): void
  created(next: Known): void
  names(object: Known, cluster: Known): boolean
}

const open = ''

function namedBy({ spec = {} }: Obj): string[] {
  const all = [...(spec.clusterRoles ?? []), ...(spec.deliver ?? [])]
  return [...new Set(all.flatMap(({ clusters }) => clusters?.names ?? []))]
}

export function openClusterPins(clusterNamed: (name: string) => Known | undefined): ClusterPins {
  /** By uid of the object, then by name of the cluster. `open`: the next cluster of that name. */
  const pins = new Map<string, Map<string, string>>()
  const uidOf = (name: string) => {
    const cluster = clusterNamed(name)
    return cluster?.object.metadata.deletionTimestamp === undefined ? cluster?.uid : undefined
  }
  return {
    pin(next, { isRequest, stored }) {
      const named = namedBy(next.object)
      const own = pins.get(next.uid) ?? new Map<string, string>()
      pins.set(next.uid, own)
      for (const name of own.keys()) if (!named.includes(name)) own.delete(name)
      for (const name of named) {
        const current = uidOf(name)
        if (!own.has(name)) own.set(name, current ?? open)
        else if (isRequest && current !== undefined && stored[name] === current) own.set(name, current)
      }
    },
    created({ kind, name, uid }) {
      if (kind !== kinds.Cluster) return
      for (const own of pins.values()) if (own.get(name) === open) own.set(name, uid)
    },
    names: (object, { name, uid }) => pins.get(object.uid)?.get(name) === uid,
  }
}
