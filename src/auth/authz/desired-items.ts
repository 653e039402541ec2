// The items of the desired state of a cluster: roles of teams, and places of delivered secrets (D69).

import type { Ref, Resource } from '../../api/object.ts'
import { refOf } from '../../api/resources.ts'
import { clusterUidsOf, selects } from '../../kinds/cluster-selection.ts'
import type { DeliveryCluster, Target } from '../../kinds/delivery.ts'
import { pinnedOwner } from '../../kinds/project-secret-source.ts'
import { teamUidsOf } from '../../kinds/team-uids.ts'
import type { TeamRecord } from '../authn/team-index.ts'

export type Owner = { readonly user?: string | undefined; readonly team?: string | undefined; readonly uid?: string }

/** A ProjectSecret with deliveries, without its data. */
export type DeliveredSecret = {
  readonly ref: Ref
  readonly uid: string
  readonly created: string
  readonly version: string
  readonly generation: number
  readonly owner: Owner
  readonly object: Resource
  /** Everything that deliveries depend on. */
  readonly stamp: string
}

export type Item =
  | { readonly id: string; readonly secret: DeliveredSecret; readonly target: Target }
  | {
      readonly id: string
      readonly role: { readonly team: string; readonly uid: string; readonly clusterRole: string }
    }

export const rolesIn = ({ remoteRoles, clusterUids }: TeamRecord, cluster: DeliveryCluster): readonly string[] =>
  remoteRoles.flatMap(({ role, clusters }) => (selects(clusters, cluster, clusterUids) ? [role] : []))

export function readSecret(object: Resource): DeliveredSecret {
  const { metadata, spec = {}, ...rest } = object
  const owner = (spec['owner'] ?? {}) as Owner
  const { resourceVersion = '0', uid = '', creationTimestamp = '', generation = 0 } = metadata
  const { namespace, name, annotations } = metadata
  const pinned = pinnedOwner(owner, teamUidsOf(object))
  const isLeaving = metadata.deletionTimestamp !== undefined
  return {
    stamp: JSON.stringify([uid, generation, pinned, clusterUidsOf(object), isLeaving]),
    ref: refOf(object),
    uid,
    created: creationTimestamp,
    version: resourceVersion,
    generation,
    owner: pinned,
    object: {
      apiVersion: rest.apiVersion,
      kind: rest.kind,
      metadata: {
        ...(namespace ? { namespace } : {}),
        ...(name ? { name } : {}),
        ...(annotations ? { annotations } : {}),
      },
      spec: { deliver: metadata.deletionTimestamp ? [] : (spec['deliver'] ?? []) },
    } as Resource,
  }
}

export function byAge(one: Item, other: Item): number {
  if (!('secret' in one && 'secret' in other)) return 0
  const key = ({ created, uid }: DeliveredSecret) => `${created} ${uid}`
  return key(one.secret) < key(other.secret) ? -1 : 1
}

/** Whether an agent would see no difference. The status of a secret changes its version only. */
export function isSame(one: Item, other: Item): boolean {
  if ('secret' in one !== 'secret' in other) return false
  if (!('secret' in one && 'secret' in other)) return JSON.stringify(one) === JSON.stringify(other)
  return (
    one.secret.uid === other.secret.uid &&
    one.secret.generation === other.secret.generation &&
    JSON.stringify(one.target) === JSON.stringify(other.target)
  )
}
