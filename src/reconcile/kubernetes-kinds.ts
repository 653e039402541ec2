// Kubernetes kinds that several programs write to clusters.

import { defineKind, type Kind } from '../api/kind.ts'
import { flag, integer, mapOf, struct, text } from '../api/schema.ts'

const core = { group: '', version: 'v1', namespaced: true } as const
const data = mapOf(text('A value.'), 'Values by key.')

export const ConfigMap: Kind = defineKind({
  ...core,
  kind: 'ConfigMap',
  plural: 'configmaps',
  singular: 'configmap',
  shortNames: ['cm'],
  description: 'ConfigMap holds configuration by key.',
  fields: { data, binaryData: mapOf(text('Base64.'), 'Binary values by key.'), immutable: flag('Never changes.') },
  sample: {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'settings', namespace: 'default' },
    data: { a: 'b' },
  },
})

export const Secret: Kind = defineKind({
  ...core,
  kind: 'Secret',
  plural: 'secrets',
  singular: 'secret',
  description: 'Secret holds confidential values by key.',
  fields: { data, type: text('Its type.'), immutable: flag('Never changes.') },
  sample: { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'key', namespace: 'default' }, data: { a: 'Yg==' } },
})

export const Lease: Kind = defineKind({
  group: 'coordination.k8s.io',
  version: 'v1',
  namespaced: true,
  kind: 'Lease',
  plural: 'leases',
  singular: 'lease',
  description: 'Lease elects one holder among several candidates.',
  spec: struct('The holder and the duration.', {
    holderIdentity: text('The holder.'),
    leaseDurationSeconds: integer('Seconds after the renewal at which the lease expires.'),
    acquireTime: text('When the holder acquired it.'),
    renewTime: text('When the holder renewed it.'),
    leaseTransitions: integer('Number of holder changes.'),
  }),
  sample: {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: 'syncer', namespace: 'default' },
    spec: { holderIdentity: 'a', leaseDurationSeconds: 15 },
  },
})
