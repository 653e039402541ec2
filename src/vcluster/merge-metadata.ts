// Labels and annotations of the two sides, merged key by key: what changed on the host alone goes to the virtual object,
// everything else goes the other way. What "changed" means survives a restart, because it is kept on the host object. Pure.

import { emptyMap, type Metadata } from '../api/object.ts'
import { type Base, hashOf, mayCross, type Seen } from './bookkeeping.ts'
import { MARK } from './names.ts'

type Map = { readonly [key: string]: string }
type Part = 'labels' | 'annotations'
/** Changes to make; undefined: the key goes. */
export type Changes = { readonly [key: string]: string | undefined }
export type Adopted = { readonly labels: Changes; readonly annotations: Changes }

const hashed = (map: Map, key: string) => (Object.hasOwn(map, key) ? hashOf(map[key] as string) : undefined)
const valueIn = (map: Map, key: string) => (Object.hasOwn(map, key) ? map[key] : undefined)

/** What the host changed and the virtual side did not. Where both did, the virtual side wins. */
export function adoptedFrom(host: Metadata, virtual: Metadata, base: Base): Adopted {
  const part = (name: Part): Changes => {
    const [there, here, seen] = [host[name] ?? {}, virtual[name] ?? {}, base[name]]
    const changes = emptyMap<string | undefined>()
    for (const key of new Set([...Object.keys(there), ...Object.keys(seen)])) {
      if (!mayCross(key)) continue
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

/** What both sides are now, to be compared with later. */
export function baseOf(virtual: Metadata, host: Metadata): Base {
  const part = (name: Part) => {
    const [here, there] = [virtual[name] ?? {}, host[name] ?? {}]
    const seen = emptyMap<Seen>()
    for (const key of new Set([...Object.keys(here), ...Object.keys(there)])) {
      if (!mayCross(key)) continue
      const [v, h] = [hashed(here, key), hashed(there, key)]
      seen[key] = { ...(v ? { virtual: v } : {}), ...(h ? { host: h } : {}) }
    }
    return seen
  }
  return { labels: part('labels'), annotations: part('annotations') }
}

/** What stays on the host though nobody sends it: it speaks of that side alone. */
export function keptOnHost(map: Map = {}): Map {
  const kept = emptyMap<string>()
  for (const [key, value] of Object.entries(map)) if (!mayCross(key) && !key.startsWith(MARK)) kept[key] = value
  return kept
}
