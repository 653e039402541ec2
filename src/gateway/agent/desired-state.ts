// Holds the desired state of the cluster, as the management API last sent it. A new initial state replaces the old one as a whole.

import type { DesiredItem } from '../../kinds/cluster-desired.ts'
import { digestOf, fixedOf, keyOf, type Owner, targetOf, wantedObject } from './wanted-object.ts'

export type Wanted = {
  readonly item: DesiredItem
  /** The key of the target. */
  readonly key: string
  readonly digest: string
  readonly fixed: string
}

export interface DesiredState {
  /** Whether an initial state is complete. Before, the agent knows nothing, and deletes nothing. */
  readonly isComplete: boolean
  /** The Cluster is being deleted: the state is empty, and stays so. */
  readonly isTerminating: boolean
  /** Begins a new initial state. The old state stays in use until `complete`. */
  begin(): void
  put(item: DesiredItem): void
  remove(name: string): void
  complete(state: { readonly isTerminating: boolean }): void
  /** Items with this target. More than one is a mistake of people, and only one of them can win. */
  at(key: string): readonly Wanted[]
  keys(): Iterable<string>
  /** Namespaces that get Secrets. */
  namespaces(): ReadonlySet<string>
}

/** `changed` is called with the key of every target that may need work. */
export function openDesiredState(owner: Owner, changed: (key: string) => void): DesiredState {
  let items = new Map<string, Wanted>()
  let byKey = new Map<string, readonly Wanted[]>()
  let next: Map<string, Wanted> | undefined
  let isComplete = false
  let isTerminating = false

  const wantedFor = (item: DesiredItem): Wanted | undefined => {
    const target = targetOf(item)
    if (!target) return undefined
    const object = wantedObject(item, owner)
    const [key, digest] = [keyOf(target), digestOf(object)]
    const known = items.get(item.metadata.name)
    // Not two copies of the same data while a new initial state arrives.
    if (known?.key === key && known.digest === digest) return known
    return { item, key, digest, fixed: fixedOf(object) }
  }
  /** Returns the key of the item. The caller reports it after the state is complete again: work on it may begin at once. */
  const unlink = (name: string): string | undefined => {
    const old = items.get(name)
    if (!old || !items.delete(name)) return undefined
    const left = (byKey.get(old.key) ?? []).filter(one => one !== old)
    if (left.length) byKey.set(old.key, left)
    else byKey.delete(old.key)
    return old.key
  }
  const link = (into: Map<string, readonly Wanted[]>, wanted: Wanted) =>
    into.set(wanted.key, [...(into.get(wanted.key) ?? []), wanted])

  return {
    get isComplete() {
      return isComplete
    },
    get isTerminating() {
      return isTerminating
    },
    begin() {
      next = new Map()
    },
    put(item) {
      const wanted = wantedFor(item)
      const { name } = item.metadata
      if (next) {
        if (wanted) next.set(name, wanted)
        return
      }
      if (wanted && items.get(name) === wanted) return
      const before = unlink(name)
      if (wanted) {
        items.set(name, wanted)
        link(byKey, wanted)
        changed(wanted.key)
      }
      if (before !== undefined && before !== wanted?.key) changed(before)
    },
    remove(name) {
      if (next) next.delete(name)
      else {
        const before = unlink(name)
        if (before !== undefined) changed(before)
      }
    },
    complete(state) {
      if (!next) return
      isTerminating = state.isTerminating
      const [before, now] = [items, next]
      next = undefined
      items = now
      byKey = new Map()
      for (const wanted of now.values()) link(byKey, wanted)
      const isFirst = !isComplete
      isComplete = true
      for (const [name, old] of before) if (now.get(name) !== old) changed(old.key)
      for (const [name, wanted] of now) if (isFirst || before.get(name) !== wanted) changed(wanted.key)
    },
    at: key => byKey.get(key) ?? [],
    keys: () => byKey.keys(),
    namespaces() {
      const found = new Set<string>()
      for (const { item } of items.values()) if (item.secret) found.add(item.secret.namespace)
      return found
    },
  }
}

/** The item that the cluster already has stays, so that a new item cannot take over the Secret of another one. */
export function winnerOf(items: readonly Wanted[], sourceUid: string | undefined): Wanted | undefined {
  const uidOf = ({ item }: Wanted) => (item.secret?.source ?? item.role)?.uid
  const sorted = items.toSorted((a, b) => (a.item.metadata.name < b.item.metadata.name ? -1 : 1))
  return sorted.find(one => uidOf(one) === sourceUid) ?? sorted[0]
}
