// Kubernetes kinds that the syncer reads and writes.

import { isIP } from 'node:net'
import { invalidValue } from '../../api/errors.ts'
import { defineKind, type Kind } from '../../api/kind.ts'
import type { Resource } from '../../api/object.ts'
import { flag, integer, list, mapOf, type Static, struct, text, time } from '../../api/schema.ts'
import { ConfigMap, Lease, Secret } from '../../reconcile/kubernetes-kinds.ts'

export { ConfigMap, Lease, Secret }

const core = { group: '', version: 'v1', namespaced: true } as const
const free = { 'x-kubernetes-preserve-unknown-fields': true } as const

const objectReference = struct('The referenced object.', {
  apiVersion: text('Its API version.'),
  kind: text('Its kind.'),
  namespace: text('Its namespace.'),
  name: text('Its name.'),
  uid: text('Its UID.'),
  resourceVersion: text('Its resource version.'),
  fieldPath: text('The field of the object.'),
})
const address = struct(
  'An endpoint address.',
  {
    ip: text('The address.'),
    hostname: text('Name of the endpoint.'),
    nodeName: text('The node of the endpoint.'),
    targetRef: objectReference,
  },
  ['ip'],
)
const port = struct(
  'A port.',
  {
    name: text('Name of the port.'),
    port: integer('Number of the port.'),
    protocol: text('TCP, UDP or SCTP.'),
    appProtocol: text('The application protocol.'),
  },
  ['port'],
)
const subset = struct('Addresses that share ports.', {
  addresses: list(address, 'Ready addresses.'),
  notReadyAddresses: list(address, 'Addresses that are not ready.'),
  ports: list(port, 'Ports of these addresses.'),
})
export type ObjectReference = Static<typeof objectReference>
export type Address = Static<typeof address>
export type Subset = Static<typeof subset>
export type EndpointsObject = Resource & { readonly subsets?: readonly Subset[] }

export const Endpoints: Kind = defineKind({
  ...core,
  kind: 'Endpoints',
  plural: 'endpoints',
  singular: 'endpoints',
  shortNames: ['ep'],
  description: 'Endpoints lists the addresses of the service of the same name.',
  fields: { subsets: list(subset, 'All addresses and ports.') },
  validate: next =>
    ((next as EndpointsObject).subsets ?? []).flatMap((one, index) =>
      (['addresses', 'notReadyAddresses'] as const).flatMap(key =>
        (one[key] ?? []).flatMap(({ ip }, at) =>
          isIP(ip ?? '') ? [] : [invalidValue(`subsets[${index}].${key}[${at}].ip`, ip, 'must be a valid IP address')],
        ),
      ),
    ),
  sample: {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: { name: 'nginx', namespace: 'default' },
    subsets: [{ addresses: [{ ip: '10.0.0.1' }], ports: [{ port: 80 }] }],
  },
})

const endpointConditions = struct('Whether the endpoint accepts traffic.', {
  ready: flag('It accepts new connections.'),
  serving: flag('It accepts connections, also while it terminates.'),
  terminating: flag('It is being deleted.'),
})
const endpoint = struct(
  'Addresses of one backend.',
  {
    addresses: list(text('An address.'), 'Its addresses, which are equivalent.'),
    conditions: endpointConditions,
    hostname: text('Name of the endpoint.'),
    nodeName: text('The node of the endpoint.'),
    zone: text('The zone of the endpoint.'),
    hints: struct('Hints for routing.', {
      forZones: list(struct('A zone.', { name: text('Its name.') }), 'Zones that should use the endpoint.'),
      forNodes: list(struct('A node.', { name: text('Its name.') }), 'Nodes that should use the endpoint.'),
    }),
    deprecatedTopology: mapOf(text('A value.'), 'Topology of the old API.'),
    targetRef: objectReference,
  },
  ['addresses'],
)
const slicePort = struct('A port.', {
  name: text('Name of the port.'),
  port: integer('Number of the port.'),
  protocol: text('TCP, UDP or SCTP.'),
  appProtocol: text('The application protocol.'),
})
type SliceEndpoint = Static<typeof endpoint>
export type EndpointSliceObject = Resource & {
  readonly addressType?: string
  readonly endpoints?: readonly SliceEndpoint[]
  readonly ports?: readonly Static<typeof slicePort>[]
}
/** An object that the syncer copies to the host. Which fields it has depends on its kind. */
export type SyncedObject = EndpointsObject & EndpointSliceObject

export const EndpointSlice: Kind = defineKind({
  group: 'discovery.k8s.io',
  version: 'v1',
  namespaced: true,
  kind: 'EndpointSlice',
  plural: 'endpointslices',
  singular: 'endpointslice',
  description: 'EndpointSlice lists some addresses of a service.',
  fields: {
    addressType: text('IPv4, IPv6 or FQDN.'),
    endpoints: list(endpoint, 'The backends.'),
    ports: list(slicePort, 'Ports of all backends.'),
  },
  sample: {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'nginx-1', namespace: 'default', labels: { 'kubernetes.io/service-name': 'nginx' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['10.0.0.1'] }],
    ports: [{ port: 80 }],
  },
})

export type ServiceObject = Resource<{ readonly selector?: { readonly [label: string]: string } }>

export const Service: Kind = defineKind({
  ...core,
  kind: 'Service',
  plural: 'services',
  singular: 'service',
  shortNames: ['svc'],
  description: 'Service names a set of endpoints.',
  fields: { spec: mapOf({ ...free, type: 'object' } as never, 'Selector, ports and more.', free) },
  sample: { apiVersion: 'v1', kind: 'Service', metadata: { name: 'nginx', namespace: 'default' }, spec: { ports: [] } },
})

export const Event: Kind = defineKind({
  ...core,
  kind: 'Event',
  plural: 'events',
  singular: 'event',
  shortNames: ['ev'],
  description: 'Event reports something that happened to an object.',
  fields: {
    involvedObject: objectReference,
    reason: text('The reason, in one word.'),
    message: text('What happened.'),
    type: text('Normal or Warning.'),
    source: struct('The source of the event.', { component: text('The program.'), host: text('Its host.') }),
    reportingComponent: text('The program.'),
    reportingInstance: text('The instance of the program.'),
    count: integer('Number of occurrences.'),
    firstTimestamp: time('First occurrence.'),
    lastTimestamp: time('Last occurrence.'),
  },
  sample: { apiVersion: 'v1', kind: 'Event', metadata: { name: 'nginx.1', namespace: 'default' }, reason: 'SyncError' },
})

/** The kinds of a test server for the syncer. */
export const clusterKinds: readonly Kind[] = [Endpoints, EndpointSlice, Service, ConfigMap, Secret, Event, Lease]
