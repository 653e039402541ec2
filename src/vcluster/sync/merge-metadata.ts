// Labels and annotations of the two sides, merged key by key: what changed on the host alone goes to the virtual object,
// everything else goes the other way. What "changed" means survives a restart, because it is kept on the host object. Pure.

import { emptyMap, type Metadata } from '../../api/object.ts'
import type { KeyPolicy } from '../config/metadata-keys.ts'
import { MARK } from './names.ts'
import { type Base, hashOf, type Seen } from './sync-annotations.ts'

type Map = { readonly [key: string]: string }
type Part = 'labels' | 'annotations'
type Maps = { readonly labels: Map; readonly annotations: Map }
/** Changes to make; undefined: the key goes. */
export type Changes = { readonly [key: string]: string | undefined }
export type Adopted = { readonly labels: Changes; readonly annotations: Changes }

const hashed = (map: Map, key: string) => (Object.hasOwn(map, key) ? hashOf(map[key] as string) : undefined)
const valueIn = (map: Map, key: string) => (Object.hasOwn(map, key) ? map[key] : undefined)

/** What the host changed and the virtual side did not. Where both did, the virtual side wins. */
export function adoptedFrom(host: Metadata, virtual: Metadata, base: Base, crosses: KeyPolicy): Adopted {
  const part = (name: Part): Changes => {
    const [there, here, seen] = [host[name] ?? {}, virtual[name] ?? {}, base[name]]
    const changes = emptyMap<string | undefined>()
    for (const key of new Set([...Object.keys(there), ...Object.keys(seen)])) {
      if (!crosses(key)) continue
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

/**
 * What both sides are now, to be compared with later. Of the keys that do not cross it has those in `written`: patches set
 * them, and the syncer may take them back.
 */
export function baseOf(virtual: Metadata, host: Maps, { crosses, written }: Crossing): Base {
  const part = (name: Part) => {
    const [here, there] = [virtual[name] ?? {}, host[name]]
    const seen = emptyMap<Seen>()
    for (const key of new Set([...Object.keys(here), ...Object.keys(there)])) {
      if (key.startsWith(MARK)) continue
      const v = crosses(key) ? hashed(here, key) : undefined
      const h = crosses(key) || Object.hasOwn(written[name], key) ? hashed(there, key) : undefined
      if (v || h) seen[key] = { ...(v ? { virtual: v } : {}), ...(h ? { host: h } : {}) }
    }
    return seen
  }
  return { labels: part('labels'), annotations: part('annotations') }
}

export type Crossing = {
  readonly crosses: KeyPolicy
  /** Labels and annotations that this syncer is about to write. */
  readonly written: Maps
}

/**
 * What stays on the host though nobody sends it: keys that do not cross, and that somebody else put there. A key that the
 * syncer wrote itself, for a patch or under another configuration, goes.
 */
export function keptOnHost(host: Metadata | undefined, base: Base | undefined, { crosses, written }: Crossing): Maps {
  const part = (name: Part): Map => {
    const kept = emptyMap<string>()
    for (const [key, value] of Object.entries(host?.[name] ?? {})) {
      if (key.startsWith(MARK) || crosses(key) || Object.hasOwn(written[name], key)) continue
      if (base?.[name][key]?.host !== hashOf(value)) kept[key] = value
    }
    return kept
  }
  return { labels: part('labels'), annotations: part('annotations') }
}
