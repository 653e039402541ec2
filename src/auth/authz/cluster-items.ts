// Keeps the items of connected clusters, by the uid of the cluster. Of several secrets that want one place, the oldest has it (D69).

import { byAge, type Item, isSame } from './desired-items.ts'

export interface ClusterItems {
  of(cluster: string): ReadonlyMap<string, Item>
  /** Sets or removes a role. */
  setRole(cluster: string, id: string, item: Item | undefined): void
  /** Sets all items of a secret in a cluster. Returns whether their places changed. */
  place(cluster: string, slot: string, wanted: readonly Item[]): boolean
  /** Forgets a cluster at once. */
  drop(cluster: string): void
}

/** `changed`: called for every item that an agent sees differently. */
export function openClusterItems(changed: (cluster: string, id: string) => void): ClusterItems {
  const items = new Map<string, Map<string, Item>>()
  /** Secrets that want the same place, by cluster, item and slot of the secret. */
  const claims = new Map<string, Map<string, Map<string, Item>>>()
  /** Items of a secret, by its slot and by cluster. */
  const placed = new Map<string, Map<string, ReadonlySet<string>>>()
  const itemsIn = (cluster: string) => entryOf(items, cluster, () => new Map<string, Item>())

  const put = (cluster: string, id: string, item: Item | undefined) => {
    const own = itemsIn(cluster)
    const before = own.get(id)
    if (item) own.set(id, item)
    else own.delete(id)
    if (before !== item && !(before && item && isSame(before, item))) changed(cluster, id)
  }
  const claimsIn = (cluster: string) => entryOf(claims, cluster, () => new Map<string, Map<string, Item>>())
  const add = (cluster: string, slot: string, item: Item) => {
    const there = entryOf(claimsIn(cluster), item.id, () => new Map<string, Item>())
    const before = there.get(slot)
    there.set(slot, item)
    const holder = itemsIn(cluster).get(item.id)
    // Only a secret that was created again is younger than before.
    if (holder && holder === before && uidOf(before) !== uidOf(item)) put(cluster, item.id, oldest(there))
    else if (!holder || holder === before || byAge(item, holder) < 0) put(cluster, item.id, item)
  }
  const remove = (cluster: string, slot: string, id: string) => {
    const there = claimsIn(cluster).get(id)
    const before = there?.get(slot)
    if (!there || !before) return
    there.delete(slot)
    if (there.size === 0) claimsIn(cluster).delete(id)
    if (itemsIn(cluster).get(id) === before) put(cluster, id, oldest(there))
  }

  return {
    of: cluster => items.get(cluster) ?? new Map(),
    setRole: put,
    place(cluster, slot, wanted) {
      const before = placed.get(slot)?.get(cluster)
      if (wanted.length === 0 && !before) return false
      const now = new Set(wanted.map(({ id }) => id))
      let isMoved = now.size !== (before?.size ?? 0)
      for (const item of wanted) add(cluster, slot, item)
      for (const id of before ?? [])
        if (!now.has(id)) {
          remove(cluster, slot, id)
          isMoved = true
        }
      const own = entryOf(placed, slot, () => new Map<string, ReadonlySet<string>>())
      if (now.size) own.set(cluster, now)
      else own.delete(cluster)
      if (own.size === 0) placed.delete(slot)
      return isMoved
    },
    drop(cluster) {
      items.delete(cluster)
      claims.delete(cluster)
      for (const own of placed.values()) own.delete(cluster)
    },
  }
}

function entryOf<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const there = map.get(key)
  if (there !== undefined) return there
  const made = make()
  map.set(key, made)
  return made
}

const uidOf = (item: Item) => ('secret' in item ? item.secret.uid : '')

function oldest(claims: ReadonlyMap<string, Item>): Item | undefined {
  let found: Item | undefined
  for (const item of claims.values()) if (!found || byAge(item, found) < 0) found = item
  return found
}
