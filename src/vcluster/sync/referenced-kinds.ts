// Finds the kind of a referenced object: ConfigMap, Secret, or a kind of --sync-references from the discovery of both clusters.

import { defineKind, type Kind } from '../../api/kind.ts'
import type { Discover } from '../../transport/open-cluster.ts'
import { groupKindOf, type KindName, neverCrosses } from '../config/reference-kinds.ts'
import type { ReferencedObject } from '../patch/reference.ts'
import { ConfigMap, Secret } from './kinds.ts'

export type ReferencedKindOptions = {
  /** Whether objects of the virtual cluster are synced to the host. */
  readonly pushes: { readonly ConfigMap: boolean; readonly Secret: boolean }
  /** Further kinds; default: none. */
  readonly syncReferences?: readonly KindName[] | undefined
  readonly discover?: { readonly virtual: Discover; readonly host: Discover } | undefined
}

export type ReferencedKind = {
  readonly kind: Kind
  readonly isPushed: boolean
  /** A kind that this program does not know. Servers set fields of such objects. */
  readonly isGeneric: boolean
}

/** Returns why objects of this kind are not synced, for the tenant, or the kind. */
export type FindKind = (referenced: Pick<ReferencedObject, 'apiVersion' | 'kind'>) => Promise<ReferencedKind | string>

const neverReason = 'this kind never crosses'
const notListedReason = 'the syncer does not sync this kind'
const validVersion = /^v[0-9a-z]{1,30}$/

export function openReferencedKinds({ pushes, syncReferences = [], discover }: ReferencedKindOptions): FindKind {
  const found = new Map<string, Kind>()
  return async referenced => {
    const { apiVersion, kind } = referenced
    if (apiVersion === 'v1' && kind === 'ConfigMap')
      return { kind: ConfigMap, isPushed: pushes.ConfigMap, isGeneric: false }
    if (apiVersion === 'v1' && kind === 'Secret') return { kind: Secret, isPushed: pushes.Secret, isGeneric: false }
    const groupKind = groupKindOf(referenced)
    if (neverCrosses(groupKind)) return neverReason
    const version = apiVersion.slice(groupKind.group ? groupKind.group.length + 1 : 0)
    const isListed = syncReferences.some(
      one => one.group === groupKind.group && one.kind === kind && (one.version ?? version) === version,
    )
    // The tenant may choose the apiVersion, and it becomes part of a path.
    if (!isListed || !validVersion.test(version) || !discover) return notListedReason
    const known = found.get(`${apiVersion}/${kind}`) ?? (await discovered(referenced, discover))
    if (typeof known === 'string') return known
    found.set(`${apiVersion}/${kind}`, known)
    return { kind: known, isPushed: true, isGeneric: true }
  }
}

/** Takes the plural from the host, because the tenant may control the virtual API server. */
async function discovered(
  referenced: Pick<ReferencedObject, 'apiVersion' | 'kind'>,
  discover: NonNullable<ReferencedKindOptions['discover']>,
): Promise<Kind | string> {
  const { apiVersion, kind } = referenced
  const isOf = (one: { readonly name: string; readonly kind: string }) => one.kind === kind && !one.name.includes('/')
  const host = (await discover.host(apiVersion)).find(isOf)
  if (!host) return 'the host does not serve this kind'
  if (!host.namespaced) return 'this kind is not namespaced'
  const virtual = (await discover.virtual(apiVersion)).find(isOf)
  if (virtual?.name !== host.name || !virtual.namespaced) return 'the virtual cluster does not serve this kind'
  const { group } = groupKindOf(referenced)
  return defineKind({
    ...{ group, version: apiVersion.slice(group ? group.length + 1 : 0), kind, plural: host.name },
    ...{ singular: kind.toLowerCase(), namespaced: true, description: 'A referenced object.' },
    sample: { apiVersion, kind, metadata: {} },
  })
}
