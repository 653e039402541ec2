// Schema of vcluster.yaml: the source of its types, validation, defaults and JSON Schema (SPEC §2.10).

import { type Static, type TProperties, Type } from 'typebox'
import type { Schema } from '../../api/schema.ts'

/** Keeps unknown keys, because other programs read the same file. */
const open = <P extends TProperties>(properties: P, description = '') =>
  Type.Object(properties, { additionalProperties: true, default: {}, ...(description ? { description } : {}) })
/** Rejects unknown keys. */
const strict = <P extends TProperties>(properties: P, description: string) =>
  Type.Object(properties, { additionalProperties: false, default: {}, description })
const flag = (description: string, value: boolean) => Type.Boolean({ description, default: value })
const optionalText = (description: string) => Type.Optional(Type.String({ description }))
const oneOf = <const V extends string[]>(values: [...V], description: string, value: V[number]) =>
  Type.Unsafe<V[number]>({ type: 'string', enum: values, description, default: value })

const labels = Type.Optional(
  Type.Unsafe<{ readonly [key: string]: unknown }>({
    type: 'object',
    description: 'Treats the value at the path as a label selector.',
  }),
)

const reference = Type.Optional(
  strict(
    {
      apiVersion: optionalText('apiVersion of the referenced object.'),
      apiVersionPath: optionalText('Path of the apiVersion, relative to the patch; falls back to apiVersion.'),
      kind: optionalText('Kind of the referenced object.'),
      kindPath: optionalText('Path of the kind, relative to the patch; falls back to kind.'),
      namePath: optionalText('Path of the name, relative to the patch. Required with any other *Path.'),
      namespacePath: optionalText('Path of the namespace, relative to the patch; falls back to metadata.namespace.'),
      labels,
    },
    'Treats the value at the path as a reference to another object and rewrites it.',
  ),
)

const patch = strict(
  {
    path: Type.String({ description: 'Field to patch, such as subsets[*].addresses[*].ip; "" is the whole object.' }),
    expression: optionalText('JavaScript expression that computes the host value from `value`.'),
    reverseExpression: optionalText('Expression that computes the virtual value from the host value.'),
    reference,
    labels,
  },
  'Overrides the synced value at one path. Has either expressions or a reference.',
)

const patches = Type.Array(patch, {
  description: 'Overrides of the sync rules, in this order. Enterprise.',
  default: [],
})
const texts = (description: string) => Type.Array(Type.String(), { description, default: [] })

const services = strict(
  { enabled: flag('Sync services to the host. Requires endpoints.enabled.', true), patches },
  'Services of the virtual cluster on the host.',
)

const endpoints = strict(
  {
    enabled: flag('Sync endpoint objects to the host.', true),
    patches,
    hostDeletePolicy: oneOf(
      ['Recreate', 'Propagate'],
      'What to do when a synced object is deleted on the host: create it again, or also delete it in the virtual cluster.',
      'Recreate',
    ),
    allowedCIDRs: texts(
      'Special addresses (loopback, link-local, multicast, cloud metadata, host API server) that endpoints may have. A network must be at least as narrow as the entry of the built-in table.',
    ),
    deniedCIDRs: texts(
      'Additional addresses that endpoints may not have, also embedded in IPv6. Wins over allowedCIDRs.',
    ),
    allowedMetadataKeys: texts(
      'Labels and annotations that are synced to the host although the built-in table denies them: a key, a prefix such as example.org/ or *.example.org/, or *. The narrower entry wins.',
    ),
    deniedMetadataKeys: texts(
      'Additional labels and annotations that are not synced to the host. Wins over an equally narrow entry of allowedMetadataKeys.',
    ),
  },
  'Endpoint objects of the virtual cluster on the host.',
)

const endpointSlices = strict(
  {
    enabled: flag(
      'Sync EndpointSlices that no controller manages to the host. Policies for deletion, addresses and metadata are those of endpoints.',
      false,
    ),
    patches,
  },
  'EndpointSlices of the virtual cluster on the host.',
)

const namespaces = open(
  {
    enabled: flag('Multi-namespace mode: namespaces are mapped, names are kept.', false),
    mappings: open({
      byName: Type.Unsafe<{ readonly [from: string]: string }>({
        type: 'object',
        additionalProperties: { type: 'string' },
        description: 'Virtual namespace → host namespace. One * on both sides matches any text.',
        default: {},
      }),
    }),
  },
  'Mapping of virtual namespaces to host namespaces.',
)

const referenced = (what: string) => open({ enabled: flag(`Sync ${what} that patches reference.`, true) })

export const configSchema = Type.Object(
  {
    sync: open({
      toHost: open({
        services,
        endpoints,
        endpointSlices,
        namespaces,
        configMaps: referenced('ConfigMaps'),
        secrets: referenced('Secrets'),
      }),
    }),
    controlPlane: open({
      standalone: open({ enabled: flag('The control plane runs outside the host cluster.', false) }),
    }),
    privateNodes: open({ enabled: flag('The virtual cluster has its own nodes.', false) }),
    networking: open({
      advanced: open({
        clusterDomain: Type.String({ description: 'Domain of the cluster.', default: 'cluster.local' }),
      }),
    }),
  },
  { additionalProperties: true, description: 'The configuration of a virtual cluster.' },
)

/** The file merged with the defaults. */
export type Config = Static<typeof configSchema>

/** Whether there is anything to sync. */
export const isSyncEnabled = ({ sync: { toHost } }: Config): boolean =>
  toHost.endpoints.enabled || toHost.endpointSlices.enabled

/** The same schema, typed for generic traversal. */
export const schema = configSchema as unknown as Schema

/** JSON Schema for editors. Fields with a default are not required. */
export function jsonSchema(): string {
  const published = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'vcluster.yaml',
    ...(lenient(schema) as object),
  }
  return `${JSON.stringify(published, undefined, 2)}\n`
}

function lenient(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(lenient)
  if (typeof node !== 'object' || node === null) return node
  const { required, properties, ...rest } = node as Schema
  const needed = (required ?? []).filter(name => (properties?.[name] as Schema)?.default === undefined)
  return {
    ...Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, lenient(value)])),
    ...(properties
      ? { properties: Object.fromEntries(Object.entries(properties).map(([k, v]) => [k, lenient(v)])) }
      : {}),
    ...(needed.length ? { required: needed } : {}),
  }
}
