// How the syncer treats EndpointSlices that no controller manages.

import { stable } from './endpoints-kind.ts'
import { hostRefOf } from './host-ref.ts'
import { EndpointSlice, type SyncedObject } from './kinds.ts'
import type { SyncedKind } from './synced-kind.ts'

export const serviceLabel = 'kubernetes.io/service-name'
const managerLabel = 'endpointslice.kubernetes.io/managed-by'
/** They create slices from the Endpoints or Pods of a Service. The host's own controllers do the same there. */
const controllers = ['endpointslice-controller.k8s.io', 'endpointslicemirroring-controller.k8s.io']

export const endpointSlicesKind: SyncedKind = {
  kind: EndpointSlice,
  setting: 'endpointSlices',
  hasNameOfService: false,
  serviceOf: ({ metadata }) => metadata.labels?.[serviceLabel],
  isManaged: ({ metadata: { labels = {}, ownerReferences = [] } }) =>
    controllers.includes(labels[managerLabel] ?? '') || ownerReferences.some(({ controller }) => controller === true),
  refusal: ({ addressType }) =>
    addressType === 'FQDN'
      ? { reason: 'AddressRefused', message: 'addressType FQDN is not synced: names can resolve to any address' }
      : undefined,
  content: ({ addressType, endpoints = [], ports }, target) => ({
    ...(addressType ? { addressType } : {}),
    endpoints: target
      ? endpoints.map(one => (one.targetRef ? { ...one, targetRef: target(one.targetRef) } : one))
      : endpoints,
    ...(ports ? { ports } : {}),
  }),
  labels: ({ metadata: { namespace = '', labels = {} } }, vcluster) => {
    const service = labels[serviceLabel]
    const host = service ? hostRefOf({ namespace, name: service }, vcluster) : undefined
    return { [managerLabel]: 'vcluster.platform.sh', ...(host ? { [serviceLabel]: host.name } : {}) }
  },
  labelKeys: [managerLabel, serviceLabel],
  targets: ({ endpoints = [] }) => endpoints.flatMap(({ targetRef }) => targetRef ?? []),
  *addresses({ endpoints = [] }) {
    for (const [index, { addresses = [] }] of endpoints.entries())
      for (const [at, address] of addresses.entries()) yield [`endpoints[${index}].addresses[${at}]`, address]
  },
  isSameContent: (one, other) => contentKey(one) === contentKey(other),
  needsNewObject: (wanted, current) => wanted.addressType !== current.addressType,
}

const contentKey = ({ addressType, endpoints = [], ports = [] }: SyncedObject) =>
  stable([addressType, endpoints, ports])
