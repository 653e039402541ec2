// Decides which labels and annotations are synced between the virtual cluster and the host.

import { dnsSubdomain, qualifiedName } from '../../api/names.ts'
import { METADATA_PREFIX } from '../sync/names.ts'
import { deniedDomains } from './denied-domains.ts'

/** Whether a key is synced, in both directions. */
export type KeyPolicy = (key: string) => boolean

const localKeys = new Set([
  'control-plane.alpha.kubernetes.io/leader', // the host's slice mirroring ignores an object with it
  'kubectl.kubernetes.io/last-applied-configuration',
  'endpoints.kubernetes.io/last-change-trigger-time',
  'endpoints.kubernetes.io/managed-by',
])

/** Keys of the syncer and keys that describe only one cluster. No setting allows them. */
export const isNeverSynced = (key: string): boolean => key.startsWith(METADATA_PREFIX) || localKeys.has(key)

/** Returns undefined if the entry is valid. */
export function keyEntryProblem(entry: string): string | undefined {
  const [, domain] = /^(?:\*\.)?(.+)\/$/.exec(entry) ?? []
  const isValid =
    entry === '*' || (domain === undefined ? qualifiedName(entry).length === 0 : dnsSubdomain(domain).length === 0)
  if (isValid) return undefined
  return `must be a key such as example.org/tier, a prefix such as example.org/ or *.example.org/, or *, not "${entry.slice(0, 64)}"`
}

/** For allowedMetadataKeys, which must not contain keys that are never synced. */
export function allowedEntryProblem(entry: string): string | undefined {
  if (entry.startsWith(METADATA_PREFIX)) return `${entry.slice(0, 64)} is reserved for the syncer`
  if (localKeys.has(entry)) return `${entry} is never synced: it describes only one cluster`
  return keyEntryProblem(entry)
}

/** The narrowest entry wins. For equal entries: denied by setting, then allowed, then the built-in table. */
type Rank = { readonly narrowness: number; readonly isSynced: boolean }
type Ranks = ReadonlyMap<string, Rank>

const exactly = 1000
const prefixOnly = 500

/** Indexed by entry, so that lookups do not depend on the length of the lists. */
function ranksOf(allowed: readonly string[], denied: readonly string[]): Ranks {
  const ranks = new Map<string, Rank>()
  const add = (entry: string, isSynced: boolean) =>
    ranks.set(entry.toLowerCase(), { narrowness: narrownessOf(entry), isSynced })
  for (const { domain } of deniedDomains) for (const entry of [`${domain}/`, `*.${domain}/`]) add(entry, false)
  for (const entry of allowed) add(entry, true)
  for (const entry of denied) add(entry, false)
  return ranks
}

function narrownessOf(entry: string): number {
  if (entry === '*') return 0
  if (!entry.endsWith('/')) return exactly
  return entry.startsWith('*.') ? entry.split('.').length : prefixOnly
}

export function keyPolicy({
  allowed,
  denied,
}: {
  readonly allowed: readonly string[]
  readonly denied: readonly string[]
}): KeyPolicy {
  const ranks = ranksOf(allowed, denied)
  return key => {
    if (isNeverSynced(key)) return false
    // API servers accept annotation keys in upper case, and some controllers ignore case.
    const found = entriesFor(key.toLowerCase()).flatMap(entry => ranks.get(entry) ?? [])
    const narrowest = found.toSorted((one, other) => other.narrowness - one.narrowness)[0]
    return narrowest?.isSynced ?? true
  }
}

/** All entries that match the key. */
function entriesFor(key: string): readonly string[] {
  const slash = key.indexOf('/')
  if (slash < 0) return [key, '*']
  const labels = key.slice(0, slash).split('.')
  const domains = labels.slice(1).map((_, index) => `*.${labels.slice(index + 1).join('.')}/`)
  return [key, key.slice(0, slash + 1), ...domains, '*']
}

/** The policy without settings. */
export const defaultKeyPolicy = keyPolicy({ allowed: [], denied: [] })
