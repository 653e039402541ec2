// Whether this syncer created a host object: by all of its marks, never by the name alone. plan.ts and referents.ts ask
// before every change and deletion on the host. Pure.

import type { Metadata, Ref } from '../../api/object.ts'
import { generalManagers, managedBy, mark } from './sync-annotations.ts'

export type Claim = {
  readonly vcluster: {
    readonly name: string
    readonly namespace: string
    /** Set in multi-namespace mode. */
    readonly mapped?: unknown
  }
  /** The virtual object that the host object should stand for. */
  readonly ref: Ref
  readonly kind: string
  /** uid of the virtual object, if it exists. */
  readonly uid: string | undefined
}

/**
 * `why` is for the log and may name other tenants. 'unmarked': no syncer's marks at all. 'near': it belongs to another
 * object of this virtual cluster, which is no secret to its tenant.
 */
export type Foreign = { readonly reason: 'unmarked' | 'marked' | 'near'; readonly why: string }

export function ownershipOf(metadata: Metadata, claim: Claim): 'ours' | Foreign {
  const { labels = {}, annotations = {} } = metadata
  const { vcluster, ref, kind } = claim
  const [owner, name, namespace] = [labels[managedBy], annotations[mark.name], annotations[mark.namespace]]
  if (owner === undefined && name === undefined) return withoutMarks(metadata)
  if (owner !== vcluster.name) return marked(managedBy, owner)
  if (!isOfThisCluster(metadata, claim)) return marked(mark.vclusterNamespace, annotations[mark.vclusterNamespace])
  if (name !== undefined && namespace !== undefined && (name !== ref.name || namespace !== ref.namespace))
    return { reason: 'near', why: `it belongs to ${namespace}/${name}` }
  // A copy that somebody made of one of our objects has its marks, and is not ours.
  const expected = [
    [mark.name, ref.name],
    [mark.namespace, ref.namespace],
    [mark.kind, kind],
    [mark.hostName, metadata.name],
    [mark.hostNamespace, metadata.namespace],
  ] as const
  for (const [key, value] of expected) if (annotations[key] !== value) return marked(key, annotations[key])
  // An object that was deleted and created again has another uid. The marks are ours all the same.
  return annotations[mark.uid] === undefined ? marked(mark.uid, undefined) : 'ours'
}

/**
 * The name of a virtual cluster is unique in its namespace only. Earlier versions did not write the namespace. Their objects
 * are ours in single-namespace mode, where they are in that namespace, and otherwise if the uid proves it.
 */
function isOfThisCluster({ annotations = {} }: Metadata, { vcluster, uid }: Claim): boolean {
  const namespace = annotations[mark.vclusterNamespace]
  if (namespace !== undefined) return namespace === vcluster.namespace
  return !vcluster.mapped || (uid !== undefined && annotations[mark.uid] === uid)
}

const marked = (key: string, value: string | undefined): Foreign => ({
  reason: 'marked',
  why: value === undefined ? `it lacks the mark ${key}` : `it is marked ${key}=${value}`,
})

/** Marks of other syncers help the reader of the log. */
function withoutMarks({ labels = {}, annotations = {} }: Metadata): Foreign {
  for (const [key, value] of [...Object.entries(labels), ...Object.entries(annotations)])
    if (key.endsWith('/object-name') || (key.endsWith('/managed-by') && !generalManagers.has(key)))
      return marked(key, value)
  return { reason: 'unmarked', why: "it has none of the syncer's marks" }
}
