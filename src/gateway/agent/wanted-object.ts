// Converts an item of clusters/desired to the object that the agent writes, and reduces objects to what the agent compares.

import { createHash } from 'node:crypto'
import { canonical } from '../../api/encode.ts'
import type { Kind } from '../../api/kind.ts'
import type { Json, Ref, Resource } from '../../api/object.ts'
import { checkTargetNamespace } from '../../kinds/cluster.ts'
import { type DesiredItem, deliveredTypes } from '../../kinds/cluster-desired.ts'
import { ClusterRoleBinding } from '../../kinds/rbac.ts'
import { Secret } from '../../reconcile/kubernetes-kinds.ts'
import { bindingName, isOwn, labelsOf, sourceAnnotations, sourceUid } from './marks.ts'

export type Target = { readonly kind: Kind; readonly ref: Ref }

/** `uid`: of the Cluster that owns the objects. `groupPrefix`: of the groups that get roles. */
export type Owner = { readonly uid: string; readonly groupPrefix: string }

/** A cluster's object without its content. */
export type Actual = {
  readonly uid: string
  readonly resourceVersion: string
  /** Of the parts that the agent sets. */
  readonly digest: string
  /** The parts that only a new object can have. */
  readonly fixed: string
  readonly sourceUid: string
  readonly isOwn: boolean
  readonly isTerminating: boolean
}

type KubeObject = Resource & {
  readonly type?: string
  readonly immutable?: boolean
  readonly data?: { readonly [key: string]: string }
  readonly roleRef?: object
  readonly subjects?: readonly object[]
}

/** undefined: a newer server may want what this agent does not know. */
export function targetOf({ role, secret }: DesiredItem): Target | undefined {
  if (secret) return { kind: Secret, ref: { namespace: secret.namespace, name: secret.name } }
  if (role) return { kind: ClusterRoleBinding, ref: { namespace: '', name: bindingName(role.team, role.clusterRole) } }
  return undefined
}

/** The work queue has names. Neither namespaces nor names contain a slash. */
export const keyOf = ({ kind, ref }: Target): string => `${kind.kind}/${ref.namespace}/${ref.name}`

export function targetAt(key: string): Target {
  const [kind, namespace = '', name = ''] = key.split('/')
  return { kind: kind === Secret.kind ? Secret : ClusterRoleBinding, ref: { namespace, name } }
}

const rbacGroup = 'rbac.authorization.k8s.io'

export function wantedObject({ role, secret }: DesiredItem, { uid, groupPrefix }: Owner): Resource {
  const labels = labelsOf(uid)
  if (secret) {
    const { namespace, name, type, data, source } = secret
    const annotations = { [sourceAnnotations[0]]: `${source.namespace}/${source.name}`, [sourceUid]: source.uid }
    const metadata = { namespace, name, labels, annotations }
    return { apiVersion: 'v1', kind: 'Secret', metadata, type, data } as Resource
  }
  const { team = '', uid: teamUid = '', clusterRole = '' } = role ?? {}
  return {
    apiVersion: ClusterRoleBinding.apiVersion,
    kind: ClusterRoleBinding.kind,
    metadata: {
      name: bindingName(team, clusterRole),
      labels,
      annotations: { [sourceAnnotations[0]]: `team ${team}`, [sourceUid]: teamUid },
    },
    roleRef: { apiGroup: rbacGroup, kind: 'ClusterRole', name: clusterRole },
    subjects: [{ apiGroup: rbacGroup, kind: 'Group', name: `${groupPrefix}platform:team:${team}` }],
  } as Resource
}

export function digestOf(object: Resource): string {
  const { metadata, type = 'Opaque', immutable = false, data = {}, roleRef, subjects } = object as KubeObject
  const annotations = sourceAnnotations.map(key => metadata.annotations?.[key] ?? null)
  const content = roleRef ? { annotations, roleRef, subjects: subjects ?? [] } : { annotations, type, immutable, data }
  return createHash('sha256')
    .update(canonical(content as unknown as Json))
    .digest('base64')
}

/** Kubernetes rejects changes of these. An immutable Secret cannot become mutable again. */
export function fixedOf(object: Resource): string {
  const { roleRef, type = 'Opaque', immutable = false } = object as KubeObject
  return roleRef ? canonical(roleRef as Json) : `${type}${immutable ? ' immutable' : ''}`
}

export const actualOf = (object: Resource, uid: string): Actual => ({
  uid: object.metadata.uid ?? '',
  resourceVersion: object.metadata.resourceVersion ?? '',
  digest: digestOf(object),
  fixed: fixedOf(object),
  sourceUid: object.metadata.annotations?.[sourceUid] ?? '',
  isOwn: isOwn(object, uid),
  isTerminating: object.metadata.deletionTimestamp !== undefined,
})

/** The stored object with the wanted content. Labels, annotations, finalizers and owners that others added stay. */
export function merged(stored: Resource, wanted: Resource): Resource {
  const { metadata, ...content } = wanted
  return {
    ...stored,
    ...content,
    metadata: {
      ...stored.metadata,
      labels: { ...stored.metadata.labels, ...metadata.labels },
      annotations: { ...stored.metadata.annotations, ...metadata.annotations },
    },
  }
}

/** The agent does not rely on the management API for this: other types or namespaces would give its administrators the cluster. */
export function forbiddenReason({ secret }: DesiredItem): string | undefined {
  if (!secret) return undefined
  if (!deliveredTypes.some(type => type === secret.type))
    return `an agent does not deliver Secrets of type ${secret.type}`
  return checkTargetNamespace(secret.namespace)[0]
}
