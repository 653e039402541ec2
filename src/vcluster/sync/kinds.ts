// Kubernetes' own kinds as far as the syncer speaks of them, on either side. Test servers serve them, too.

import { isIP } from 'node:net'
import { invalidValue } from '../../api/errors.ts'
import { defineKind, type Kind } from '../../api/kind.ts'
import type { Resource } from '../../api/object.ts'
import { flag, integer, list, mapOf, type Static, struct, text, time } from '../../api/schema.ts'

const core = { group: '', version: 'v1', namespaced: true } as const
const free = { 'x-kubernetes-preserve-unknown-fields': true } as const

const objectReference = struct('What this is about.', {
  apiVersion: text('API version of it.'),
  kind: text('Kind of it.'),
  namespace: text('Namespace of it.'),
  name: text('Name of it.'),
  uid: text('Which one of that name.'),
  resourceVersion: text('In which state.'),
  fieldPath: text('Which part of it.'),
})
const address = struct(
  'Where something can be reached.',
  {
    ip: text('The address.'),
    hostname: text('Name of the endpoint.'),
    nodeName: text('The node it is on.'),
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
    appProtocol: text('What is spoken there.'),
  },
  ['port'],
)
const subset = struct('Addresses that share ports.', {
  addresses: list(address, 'Those that are ready.'),
  notReadyAddresses: list(address, 'Those that are not.'),
  ports: list(port, 'Ports of all of them.'),
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
  description: 'Endpoints is where the service of the same name can be reached.',
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

export type ServiceObject = Resource<{ readonly selector?: { readonly [label: string]: string } }>

export const Service: Kind = defineKind({
  ...core,
  kind: 'Service',
  plural: 'services',
  singular: 'service',
  shortNames: ['svc'],
  description: 'Service is a name for a set of endpoints.',
  fields: { spec: mapOf({ ...free, type: 'object' } as never, 'Selector, ports and more.', free) },
  sample: { apiVersion: 'v1', kind: 'Service', metadata: { name: 'nginx', namespace: 'default' }, spec: { ports: [] } },
})

const data = mapOf(text('A value.'), 'Values by key.')

export const ConfigMap: Kind = defineKind({
  ...core,
  kind: 'ConfigMap',
  plural: 'configmaps',
  singular: 'configmap',
  shortNames: ['cm'],
  description: 'ConfigMap is configuration by key.',
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
  description: 'Secret is values by key that not everybody may see.',
  fields: { data, type: text('What it is for.'), immutable: flag('Never changes.') },
  sample: { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'key', namespace: 'default' }, data: { a: 'Yg==' } },
})

export const Event: Kind = defineKind({
  ...core,
  kind: 'Event',
  plural: 'events',
  singular: 'event',
  shortNames: ['ev'],
  description: 'Event is something that happened to an object.',
  fields: {
    involvedObject: objectReference,
    reason: text('Why, in one word.'),
    message: text('What happened.'),
    type: text('Normal or Warning.'),
    source: struct('Who says so.', { component: text('The program.'), host: text('Where it runs.') }),
    reportingComponent: text('The program.'),
    reportingInstance: text('Which one of them.'),
    count: integer('How often.'),
    firstTimestamp: time('When it happened first.'),
    lastTimestamp: time('When it happened last.'),
  },
  sample: { apiVersion: 'v1', kind: 'Event', metadata: { name: 'nginx.1', namespace: 'default' }, reason: 'SyncError' },
})

export const Lease: Kind = defineKind({
  group: 'coordination.k8s.io',
  version: 'v1',
  namespaced: true,
  kind: 'Lease',
  plural: 'leases',
  singular: 'lease',
  description: 'Lease says who does something that only one may do.',
  spec: struct('Who, and for how long.', {
    holderIdentity: text('Who.'),
    leaseDurationSeconds: integer('How long after the renewal it counts.'),
    acquireTime: text('Since when.'),
    renewTime: text('When it was renewed.'),
    leaseTransitions: integer('How often the holder changed.'),
  }),
  sample: {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: 'syncer', namespace: 'default' },
    spec: { holderIdentity: 'a', leaseDurationSeconds: 15 },
  },
})

/** What a test server serves, to be a cluster for the syncer. */
export const clusterKinds: readonly Kind[] = [Endpoints, Service, ConfigMap, Secret, Event, Lease]
