// The one description of a vcluster.yaml: types, checks, defaults and the JSON Schema for editors all come from it (SPEC §2.10).

import { type Static, type TProperties, Type } from 'typebox'
import type { Schema } from '../../api/schema.ts'

/** Keys that are not listed are kept as they are: the file has many readers. */
const open = <P extends TProperties>(properties: P, description = '') =>
  Type.Object(properties, { additionalProperties: true, default: {}, ...(description ? { description } : {}) })
/** Keys that are not listed are mistakes. */
const strict = <P extends TProperties>(properties: P, description: string) =>
  Type.Object(properties, { additionalProperties: false, default: {}, description })
const flag = (description: string, value: boolean) => Type.Boolean({ description, default: value })
const words = (description: string) => Type.Optional(Type.String({ description }))
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
      apiVersion: words('apiVersion of the referenced object.'),
      apiVersionPath: words('Where the apiVersion is, relative to the path; falls back to apiVersion.'),
      kind: words('Kind of the referenced object.'),
      kindPath: words('Where the kind is, relative to the path; falls back to kind.'),
      namePath: words('Where the name is, relative to the path. Needed with any other *Path.'),
      namespacePath: words('Where the namespace is, relative to the path; falls back to metadata.namespace.'),
      labels,
    },
    'Treats the value at the path as a reference to another object and rewrites it.',
  ),
)

const patch = strict(
  {
    path: Type.String({ description: 'Field to patch, such as subsets[*].addresses[*].ip; "" is the whole object.' }),
    expression: words('JavaScript expression that makes the host value from `value`.'),
    reverseExpression: words('Expression that makes the virtual value from the host value.'),
    reference,
    labels,
  },
  'Overrides what is synced at one path. Either expressions or a reference.',
)

const patches = Type.Array(patch, {
  description: 'Overrides of the sync rules, in this order. Enterprise.',
  default: [],
})
const texts = (description: string) => Type.Array(Type.String(), { description, default: [] })

const services = strict(
  { enabled: flag('Sync services to the host. Needs endpoints.enabled.', true), patches },
  'Services of the virtual cluster on the host.',
)

const endpoints = strict(
  {
    enabled: flag('Sync endpoint objects to the host.', true),
    patches,
    hostDeletePolicy: oneOf(
      ['Recreate', 'Propagate'],
      'What happens when a synced object is deleted on the host: made again, or deleted in the virtual cluster, too.',
      'Recreate',
    ),
    allowedCIDRs: texts(
      'Special addresses (loopback, link-local, multicast, cloud metadata, host API server) that endpoints may have. A network opens only special addresses that it names at least as narrowly as the built-in table.',
    ),
    deniedCIDRs: texts(
      'Further addresses that endpoints may not have, also where IPv6 embeds them. Wins over allowedCIDRs.',
    ),
    allowedMetadataKeys: texts(
      'Labels and annotations of tenants that reach the host though the built-in table denies them: a key, a prefix such as example.org/ or *.example.org/, or *. The narrower entry wins.',
    ),
    deniedMetadataKeys: texts(
      'Further labels and annotations of tenants that do not reach the host. Wins over an entry of allowedMetadataKeys that is as narrow.',
    ),
  },
  'Endpoint objects of the virtual cluster on the host.',
)

const namespaces = open(
  {
    enabled: flag('Multi-namespace mode: namespaces are mapped, names are kept.', false),
    mappings: open({
      byName: Type.Unsafe<{ readonly [from: string]: string }>({
        type: 'object',
        additionalProperties: { type: 'string' },
        description: 'Virtual namespace → host namespace. One * on both sides stands for any text.',
        default: {},
      }),
    }),
  },
  'Where objects of a virtual namespace go.',
)

const referents = (what: string) =>
  open({ enabled: flag(`Bring along ${what} that references of patches name.`, true) })

export const configSchema = Type.Object(
  {
    sync: open({
      toHost: open({
        services,
        endpoints,
        namespaces,
        configMaps: referents('ConfigMaps'),
        secrets: referents('Secrets'),
      }),
    }),
    controlPlane: open({
      standalone: open({ enabled: flag('The control plane runs outside of the host cluster.', false) }),
    }),
    privateNodes: open({ enabled: flag('The virtual cluster has nodes of its own.', false) }),
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

/** For those who walk it. */
export const schema = configSchema as unknown as Schema

/** What editors are given. Nothing is required in it that has a default. */
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
