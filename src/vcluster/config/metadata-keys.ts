// Which labels and annotations cross between a tenant and the host. translate.ts and merge-metadata.ts ask for every key;
// config-rules.ts checks the entries of the configuration. Pure.

import { dnsSubdomain, qualifiedName } from '../../api/names.ts'
import { MARK } from '../sync/names.ts'
import { deniedDomains } from './denied-domains.ts'

/** Whether a key crosses, in either direction. A key that does not belongs to its own side. */
export type KeyPolicy = (key: string) => boolean

const ofOneSide = new Set([
  'control-plane.alpha.kubernetes.io/leader', // the host's slice mirroring ignores an object with it
  'kubectl.kubernetes.io/last-applied-configuration',
  'endpoints.kubernetes.io/last-change-trigger-time',
  'endpoints.kubernetes.io/managed-by',
])

/** Marks, and keys that describe one side alone: no setting lets them cross. */
export const neverCrosses = (key: string): boolean => key.startsWith(MARK) || ofOneSide.has(key)

/** What is wrong with an entry; undefined: nothing. */
export function keyEntryProblem(entry: string): string | undefined {
  const [, domain] = /^(?:\*\.)?(.+)\/$/.exec(entry) ?? []
  const isValid =
    entry === '*' || (domain === undefined ? qualifiedName(entry).length === 0 : dnsSubdomain(domain).length === 0)
  if (isValid) return undefined
  return `must be a key such as example.org/tier, a prefix such as example.org/ or *.example.org/, or *, not "${entry.slice(0, 64)}"`
}

/** The same for an entry of allowedMetadataKeys: some keys must never cross. */
export function allowedEntryProblem(entry: string): string | undefined {
  if (entry.startsWith(MARK)) return `${entry.slice(0, 64)} is reserved for the syncer`
  if (ofOneSide.has(entry)) return `${entry} never crosses: it describes one side alone`
  return keyEntryProblem(entry)
}

/** Narrower entries win. Among entries that are alike: denied by setting, then allowed, then the built-in table. */
type Rank = { readonly narrowness: number; readonly crosses: boolean }
type Ranks = ReadonlyMap<string, Rank>

const exactly = 1000
const prefixOnly = 500

/** Entries are found by what they say, so that a long list costs no more than a short one. */
function ranksOf(allowed: readonly string[], denied: readonly string[]): Ranks {
  const ranks = new Map<string, Rank>()
  const add = (entry: string, crosses: boolean) =>
    ranks.set(entry.toLowerCase(), { narrowness: narrownessOf(entry), crosses })
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
    if (neverCrosses(key)) return false
    // API servers accept annotation keys in upper case, and some controllers ignore case.
    const found = entriesFor(key.toLowerCase()).flatMap(entry => ranks.get(entry) ?? [])
    const narrowest = found.toSorted((one, other) => other.narrowness - one.narrowness)[0]
    return narrowest?.crosses ?? true
  }
}

/** Every entry that would match the key. */
function entriesFor(key: string): readonly string[] {
  const slash = key.indexOf('/')
  if (slash < 0) return [key, '*']
  const labels = key.slice(0, slash).split('.')
  const domains = labels.slice(1).map((_, index) => `*.${labels.slice(index + 1).join('.')}/`)
  return [key, key.slice(0, slash + 1), ...domains, '*']
}

/** Without any setting. */
export const defaultKeyPolicy = keyPolicy({ allowed: [], denied: [] })
