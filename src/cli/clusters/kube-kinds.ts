// Kubernetes kinds of the agent's manifests, in the order in which they are applied.

import { defineKind, type Kind } from '../../api/kind.ts'
import { struct } from '../../api/schema.ts'
import { ClusterRole, ClusterRoleBinding, Role, RoleBinding } from '../../kinds/rbac.ts'
import { ConfigMap, Secret } from '../../reconcile/kubernetes-kinds.ts'

const anything = struct('Not read by this program.', {}, [], { 'x-kubernetes-preserve-unknown-fields': true })

export const KubeNamespace: Kind = defineKind({
  group: '',
  version: 'v1',
  kind: 'Namespace',
  plural: 'namespaces',
  singular: 'namespace',
  namespaced: false,
  description: 'Namespace is a space within which names are unique.',
  fields: { spec: anything, status: anything },
  sample: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'platform-agent' } },
})

const ServiceAccount: Kind = defineKind({
  group: '',
  version: 'v1',
  kind: 'ServiceAccount',
  plural: 'serviceaccounts',
  singular: 'serviceaccount',
  namespaced: true,
  description: 'ServiceAccount is the identity of pods.',
  fields: {},
  sample: { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'agent', namespace: 'default' } },
})

export const Deployment: Kind = defineKind({
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  plural: 'deployments',
  singular: 'deployment',
  namespaced: true,
  description: 'Deployment runs copies of a pod.',
  fields: { spec: anything, status: anything },
  sample: { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'agent', namespace: 'default' }, spec: {} },
})

const Service: Kind = defineKind({
  group: '',
  version: 'v1',
  kind: 'Service',
  plural: 'services',
  singular: 'service',
  namespaced: true,
  description: 'Service is an address of pods.',
  fields: { spec: anything, status: anything },
  sample: { apiVersion: 'v1', kind: 'Service', metadata: { name: 'agent', namespace: 'default' }, spec: {} },
})

/** Permissions come before the pods that need them. */
export const manifestKinds: readonly Kind[] = [
  KubeNamespace,
  ServiceAccount,
  ClusterRole,
  ClusterRoleBinding,
  Role,
  RoleBinding,
  Secret,
  ConfigMap,
  Service,
  Deployment,
]

/** Kinds of the objects that the agent creates. Its Lease goes with its namespace. */
export const agentKinds: readonly Kind[] = [ClusterRoleBinding, Secret, ConfigMap]
