// Decides whether this syncer created a host object, by all of its sync metadata and never by its name alone.

import type { Metadata, Ref } from '../../api/object.ts'
import { generalManagers, managedBy, mark } from './sync-annotations.ts'

export type Claim = {
  readonly vcluster: {
    readonly name: string
    readonly namespace: string
    /** Set in multi-namespace mode. */
    readonly mapped?: unknown
  }
  /** The virtual object that the host object should belong to. */
  readonly ref: Ref
  readonly kind: string
  /** uid of the virtual object, if it exists. */
  readonly uid: string | undefined
}

/**
 * `why` is for the log and may name other tenants. 'unmarked': it has no metadata of a syncer. 'near': it belongs to another
 * object of this virtual cluster, which the tenant may know.
 */
export type Foreign = { readonly reason: 'unmarked' | 'mismatch' | 'near'; readonly why: string }

export function ownershipOf(metadata: Metadata, claim: Claim): 'ours' | Foreign {
  const { labels = {}, annotations = {} } = metadata
  const { vcluster, ref, kind } = claim
  const [owner, name, namespace] = [labels[managedBy], annotations[mark.name], annotations[mark.namespace]]
  if (owner === undefined && name === undefined) return foreignMetadata(metadata)
  if (owner !== vcluster.name) return mismatch(managedBy, owner)
  if (!isOfThisCluster(metadata, claim)) return mismatch(mark.vclusterNamespace, annotations[mark.vclusterNamespace])
  if (name !== undefined && namespace !== undefined && (name !== ref.name || namespace !== ref.namespace))
    return { reason: 'near', why: `it belongs to ${namespace}/${name}` }
  // A copy of one of our objects has its annotations but another name.
  const expected = [
    [mark.name, ref.name],
    [mark.namespace, ref.namespace],
    [mark.kind, kind],
    [mark.hostName, metadata.name],
    [mark.hostNamespace, metadata.namespace],
  ] as const
  for (const [key, value] of expected) if (annotations[key] !== value) return mismatch(key, annotations[key])
  // The uid may differ: the virtual object may have been deleted and created again.
  return annotations[mark.uid] === undefined ? mismatch(mark.uid, undefined) : 'ours'
}

/**
 * The name of a virtual cluster is unique only within its namespace. Earlier versions did not write the namespace. Their objects
 * are ours in single-namespace mode, where they are in that namespace, and otherwise if the uid matches.
 */
function isOfThisCluster({ annotations = {} }: Metadata, { vcluster, uid }: Claim): boolean {
  const namespace = annotations[mark.vclusterNamespace]
  if (namespace !== undefined) return namespace === vcluster.namespace
  return !vcluster.mapped || (uid !== undefined && annotations[mark.uid] === uid)
}

const mismatch = (key: string, value: string | undefined): Foreign => ({
  reason: 'mismatch',
  why: value === undefined ? `it lacks ${key}` : `it has ${key}=${value}`,
})

/** Names the metadata of another syncer, for the log. */
function foreignMetadata({ labels = {}, annotations = {} }: Metadata): Foreign {
  for (const [key, value] of [...Object.entries(labels), ...Object.entries(annotations)])
    if (key.endsWith('/object-name') || (key.endsWith('/managed-by') && !generalManagers.has(key)))
      return mismatch(key, value)
  return { reason: 'unmarked', why: 'it has no metadata of the syncer' }
}
