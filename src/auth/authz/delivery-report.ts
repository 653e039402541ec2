// Tells whether a project secret is sent to a cluster that it selects, and why not (D69).

import { clusterUidsOf, selects } from '../../kinds/cluster-selection.ts'
import { deliveriesOf, maxTargets, targetsIn } from '../../kinds/delivery.ts'
import type { ClusterRecord } from '../authn/cluster-index.ts'
import type { DeliveredSecret, Item } from './desired-items.ts'

/** `reason` and `message`: why nothing, or not everything, is sent to the cluster. */
export type ClusterDelivery = {
  readonly cluster: string
  readonly secrets: number
  readonly reason?: string
  readonly message?: string
}

type State = {
  readonly mayDeliver: (secret: DeliveredSecret, cluster: string) => boolean
  /** The item of the cluster with this name. */
  readonly itemAt: (id: string) => Item | undefined
}

/** undefined: the secret does not select the cluster. */
export function deliveryIn(
  secret: DeliveredSecret,
  cluster: ClusterRecord,
  { mayDeliver, itemAt }: State,
): ClusterDelivery | undefined {
  const uids = clusterUidsOf(secret.object)
  if (cluster.isTerminating) return undefined
  if (!deliveriesOf(secret.object).some(one => selects(one.clusters ?? {}, cluster, uids))) return undefined
  const { name } = cluster
  const refuse = (reason: string, message: string, secrets = 0) => ({ cluster: name, secrets, reason, message })
  if (cluster.isDisabled) return refuse('ClusterDisabled', 'the cluster is disabled')
  const ids = targetsIn(secret.object, cluster).map(one => `secret/${one.namespace}/${one.name}`)
  if (ids.length === 0) return refuse('NoNamespace', 'the cluster gives none of these namespaces to the project')
  if (ids.length === maxTargets)
    return refuse(
      'TooManySecrets',
      `a project secret is delivered to at most ${maxTargets} places of a cluster`,
      ids.length,
    )
  if (!mayDeliver(secret, name))
    return refuse('OwnerForbidden', 'the owner of the secret may not deliver to the cluster')
  const taken = ids.filter(id => {
    const item = itemAt(id)
    return item && 'secret' in item && item.secret.uid !== secret.uid
  })
  const place = taken[0]?.slice('secret/'.length)
  if (place) return refuse('PlaceTaken', `an older project secret is delivered to ${place}`, ids.length - taken.length)
  return { cluster: name, secrets: ids.length }
}
