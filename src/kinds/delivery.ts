// Deliveries of a ProjectSecret: copies of it as Secrets in connected clusters (D69).

import { type FieldError, invalidValue, isEnough } from '../api/errors.ts'
import type { Grant } from '../api/grant.ts'
import { dnsSubdomain } from '../api/names.ts'
import type { Json, Resource } from '../api/object.ts'
import type { Question } from '../api/permissions.ts'
import { closed, list, oneOf, type Static, setOf, struct, text } from '../api/schema.ts'
import { checkTargetNamespace } from './cluster.ts'
import { deliveredTypes } from './cluster-desired.ts'
import {
  checkSelection,
  clusterSelection,
  clusterUidsOf,
  type SelectableCluster,
  selects,
} from './cluster-selection.ts'
import { isDataKey } from './secret-data.ts'

/** An absent field means more than a present one, so that unknown fields are errors. */
const delivery = struct(
  'A delivery to connected clusters.',
  {
    clusters: clusterSelection,
    namespaces: setOf(
      text(''),
      'Namespaces of the clusters. Default: all that the cluster gives to the project. Others are left out.',
    ),
    name: text('Name of the Secret. Default: the name of this object.'),
    type: oneOf([...deliveredTypes], 'Type of the Secret. Default: Opaque.'),
    keys: setOf(text(''), 'Keys to deliver. Default: all.'),
  },
  ['clusters'],
  closed,
)

/** The most deliveries of one secret. */
const maxDeliveries = 10

export const deliver = list(delivery, 'Connected clusters that get the data as a Secret.', { maxItems: maxDeliveries })
export type Delivery = Static<typeof delivery>

type Owner = { readonly user?: string | undefined; readonly team?: string | undefined }
type Spec = { readonly deliver?: readonly Delivery[] | undefined; readonly owner?: Owner | undefined }
type Secret = Resource<Spec, unknown>

export const deliveriesOf = ({ spec }: Pick<Secret, 'spec'>): readonly Delivery[] => spec?.deliver ?? []

export const deliverGrants = (secret: Secret): Grant[] =>
  deliveriesOf(secret).map(({ clusters = {}, ...target }) => ({
    type: 'deliver',
    field: 'spec.deliver',
    clusters,
    target: target as Json,
    owner: secret.spec?.owner ?? {},
  }))

export function checkDeliveries(entries: readonly Delivery[] = []): FieldError[] {
  const errors: FieldError[] = []
  const check = (at: string, value: string, problems: readonly string[]) => {
    if (!isEnough(errors)) for (const problem of problems) errors.push(invalidValue(at, value, problem))
  }
  for (const [index, { clusters, namespaces = [], name, keys = [] }] of entries.entries()) {
    const at = `spec.deliver[${index}]`
    if (!isEnough(errors)) errors.push(...checkSelection(clusters, `${at}.clusters`))
    for (const [position, namespace] of namespaces.entries())
      check(`${at}.namespaces[${position}]`, namespace, checkTargetNamespace(namespace))
    if (name) check(`${at}.name`, name, dnsSubdomain(name))
    for (const [position, key] of keys.entries())
      if (!isDataKey(key))
        check(`${at}.keys[${position}]`, key, ["must consist of alphanumeric characters, '-', '_' or '.'"])
  }
  return errors
}

const maxShown = 5

/** The keys that a delivery names and the data lacks, as text; undefined: none. */
export function missingKeys(keys: readonly string[], data: object): string | undefined {
  const missing = keys.filter(key => !Object.hasOwn(data, key))
  if (missing.length === 0) return undefined
  const others = missing.length > maxShown ? ` and ${missing.length - maxShown} more` : ''
  return `the secret has no ${missing.length === 1 ? 'key' : 'keys'} ${missing.slice(0, maxShown).join(', ')}${others}`
}

/** The most Secrets of one ProjectSecret in one cluster. */
export const maxTargets = 500

/** The permission to deliver to a cluster. */
export const deliverTo = (cluster: string): Question => ({
  verb: 'deliver',
  target: { group: 'management.platform.sh', resource: 'clusters', namespace: '', name: cluster },
})

/** A Secret in a cluster that a ProjectSecret asks for. */
export type Target = {
  readonly namespace: string
  readonly name: string
  readonly type: string
  /** undefined: all keys. */
  readonly keys: readonly string[] | undefined
  /** The index of its entry in spec.deliver. */
  readonly entry: number
}

export type DeliveryCluster = SelectableCluster & {
  readonly projects: readonly {
    readonly project?: string | undefined
    readonly namespaces?: readonly string[] | undefined
  }[]
}

/** Namespaces that the cluster gives to the project of the secret. */
export function allowedNamespaces({ metadata }: Secret, { projects }: DeliveryCluster): readonly string[] {
  const project = (metadata.namespace ?? '').replace(/^p-/, '')
  return projects.find(one => one.project === project)?.namespaces ?? []
}

/** The Secrets in a cluster, without those in namespaces that do not belong to the project. The first entry counts for a name. */
export function targetsIn(secret: Secret, cluster: DeliveryCluster): readonly Target[] {
  const entries = deliveriesOf(secret)
  if (entries.length === 0) return []
  const allowed = allowedNamespaces(secret, cluster)
  const uids = clusterUidsOf(secret)
  const found = new Map<string, Target>()
  for (const [entry, { clusters = {}, namespaces, name, type, keys }] of entries.entries()) {
    if (!selects(clusters, cluster, uids)) continue
    const wanted = namespaces?.length ? new Set(namespaces) : undefined
    for (const namespace of allowed) {
      if (wanted && !wanted.has(namespace)) continue
      const target = {
        namespace,
        name: name || (secret.metadata.name ?? ''),
        type: type ?? 'Opaque',
        keys: keys?.length ? keys : undefined,
        entry,
      }
      const slot = `${namespace}/${target.name}`
      if (!found.has(slot)) found.set(slot, target)
      if (found.size === maxTargets) return [...found.values()]
    }
  }
  return [...found.values()]
}
