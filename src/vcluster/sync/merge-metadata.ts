// Three-way merge of labels and annotations. Keys changed only on the host go to the virtual object, all others to the host.
// The base of the merge is stored on the host object, so it survives a restart.

import { emptyMap, type Metadata } from '../../api/object.ts'
import type { KeyPolicy } from '../config/metadata-keys.ts'
import { METADATA_PREFIX } from './names.ts'
import { type Base, hashOf, type Seen } from './sync-annotations.ts'

type Map = { readonly [key: string]: string }
type Part = 'labels' | 'annotations'
type Maps = { readonly labels: Map; readonly annotations: Map }
/** New values by key; undefined removes the key. */
export type Changes = { readonly [key: string]: string | undefined }
export type Adopted = { readonly labels: Changes; readonly annotations: Changes }

const hashed = (map: Map, key: string) => (Object.hasOwn(map, key) ? hashOf(map[key] as string) : undefined)
const valueIn = (map: Map, key: string) => (Object.hasOwn(map, key) ? map[key] : undefined)

/** Keys that only the host changed. If both sides changed a key, the virtual side wins. */
export function adoptedFrom(host: Metadata, virtual: Metadata, base: Base, isSyncedKey: KeyPolicy): Adopted {
  const part = (name: Part): Changes => {
    const [there, here, seen] = [host[name] ?? {}, virtual[name] ?? {}, base[name]]
    const changes = emptyMap<string | undefined>()
    for (const key of new Set([...Object.keys(there), ...Object.keys(seen)])) {
      if (!isSyncedKey(key)) continue
      const before: Seen = seen[key] ?? {}
      if (hashed(there, key) === before.host || hashed(here, key) !== before.virtual) continue
      changes[key] = valueIn(there, key)
    }
    return changes
  }
  return { labels: part('labels'), annotations: part('annotations') }
}

export const isEmpty = ({ labels, annotations }: Adopted): boolean =>
  Object.keys(labels).length + Object.keys(annotations).length === 0

export function withChanges(map: Map = {}, changes: Changes): Map {
  const next = emptyMap<string>()
  for (const [key, value] of Object.entries(map)) if (!Object.hasOwn(changes, key)) next[key] = value
  for (const [key, value] of Object.entries(changes)) if (value !== undefined) next[key] = value
  return next
}

/** The base for the next merge. Includes unsynced keys in `written`, which patches set and the syncer may remove again. */
export function baseOf(virtual: Metadata, host: Maps, { isSyncedKey, written }: KeyFilter): Base {
  const part = (name: Part) => {
    const [here, there] = [virtual[name] ?? {}, host[name]]
    const seen = emptyMap<Seen>()
    for (const key of new Set([...Object.keys(here), ...Object.keys(there)])) {
      if (key.startsWith(METADATA_PREFIX)) continue
      const v = isSyncedKey(key) ? hashed(here, key) : undefined
      const h = isSyncedKey(key) || Object.hasOwn(written[name], key) ? hashed(there, key) : undefined
      if (v || h) seen[key] = { ...(v ? { virtual: v } : {}), ...(h ? { host: h } : {}) }
    }
    return seen
  }
  return { labels: part('labels'), annotations: part('annotations') }
}

export type KeyFilter = {
  readonly isSyncedKey: KeyPolicy
  /** Labels and annotations of the pending write. */
  readonly written: Maps
}

/** Keeps unsynced keys that others set on the host object. Removes keys that the syncer wrote for a patch or an older configuration. */
export function keptOnHost(
  host: Metadata | undefined,
  base: Base | undefined,
  { isSyncedKey, written }: KeyFilter,
): Maps {
  const part = (name: Part): Map => {
    const kept = emptyMap<string>()
    for (const [key, value] of Object.entries(host?.[name] ?? {})) {
      if (key.startsWith(METADATA_PREFIX) || isSyncedKey(key) || Object.hasOwn(written[name], key)) continue
      if (base?.[name][key]?.host !== hashOf(value)) kept[key] = value
    }
    return kept
  }
  return { labels: part('labels'), annotations: part('annotations') }
}
