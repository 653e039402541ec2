// Tells whether a project secret is sent to a cluster that it selects, and why not (D69).

import { clusterUidsOf, selects } from '../../kinds/cluster-selection.ts'
import { allowedNamespaces, deliveriesOf, maxTargets, missingKeys, targetsIn } from '../../kinds/delivery.ts'
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

/** The data of a secret; undefined: it cannot be decrypted, or has changed meanwhile. */
export type DataOf = (secret: DeliveredSecret) => object | undefined

type Named = { readonly name: string; readonly uid: string; readonly isTerminating: boolean }

/** Names that select no cluster, with the reason. A name means the cluster that had it when the object was written (D68). */
export function missingClusters(
  names: Iterable<string>,
  uids: { readonly [name: string]: string },
  clusterAt: (name: string) => Named | undefined,
): ClusterDelivery[] {
  return [...new Set(names)].flatMap(name => {
    const cluster = clusterAt(name)
    const pinned = Object.hasOwn(uids, name) ? uids[name] : undefined
    const missing = (reason: string, message: string) => [{ cluster: name, secrets: 0, reason, message }]
    if (!cluster || cluster.isTerminating) return missing('ClusterNotFound', 'the cluster does not exist')
    if (pinned !== undefined && pinned !== cluster.uid)
      return missing(
        'ClusterReplaced',
        'the cluster was deleted and created again: apply this object again to use the new one',
      )
    return []
  })
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
  if (ids.length === 0) return refuse('NoNamespace', notGiven(deniedNamespaces(secret, cluster)))
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
  const denied = deniedNamespaces(secret, cluster)
  return denied.length ? refuse('NoNamespace', notGiven(denied), ids.length) : { cluster: name, secrets: ids.length }
}

/** Reports the Secrets that are sent to the cluster without a key that their delivery names. */
export function incompleteIn(
  secret: DeliveredSecret,
  cluster: ClusterRecord,
  { itemAt, dataOf }: Pick<State, 'itemAt'> & { readonly dataOf: DataOf },
): ClusterDelivery[] {
  const targets = targetsIn(secret.object, cluster).filter(({ keys, namespace, name }) => {
    const item = keys && itemAt(`secret/${namespace}/${name}`)
    return item && 'secret' in item && item.secret.uid === secret.uid
  })
  const data = targets.length ? dataOf(secret) : undefined
  const found = targets.flatMap(({ namespace, name, keys = [] }) => {
    const missing = data && missingKeys(keys, data)
    return missing ? [`${namespace}/${name}: ${missing}`] : []
  })
  if (found.length === 0) return []
  const others = found.length > maxShown ? `; and ${found.length - maxShown} more` : ''
  const message = `${found.slice(0, maxShown).join('; ')}${others}`
  return [{ cluster: cluster.name, secrets: found.length, reason: 'KeysNotFound', message }]
}

/** Namespaces that the secret names, and that the cluster does not give to its project. */
function deniedNamespaces({ object }: DeliveredSecret, cluster: ClusterRecord): readonly string[] {
  const [allowed, uids] = [new Set(allowedNamespaces(object, cluster)), clusterUidsOf(object)]
  const entries = deliveriesOf(object).filter(one => selects(one.clusters ?? {}, cluster, uids))
  return [...new Set(entries.flatMap(one => one.namespaces ?? []))].filter(one => !allowed.has(one))
}

const maxShown = 5

function notGiven(namespaces: readonly string[]): string {
  const named = namespaces.length ? `the namespaces ${namespaces.slice(0, maxShown).join(', ')}` : 'any namespace'
  return `the cluster does not give ${named} to the project: see spec.projects of the cluster`
}
