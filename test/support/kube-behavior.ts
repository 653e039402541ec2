// Fields that a real Kubernetes API server adds, and requests that it rejects, where the suites notice the difference.

import { isIPv4 } from 'node:net'
import { invalidValue } from '../../src/api/errors.ts'
import type { Kind } from '../../src/api/kind.ts'
import type { JsonObject, Resource } from '../../src/api/object.ts'
import type { Resources } from '../../src/api/resources.ts'
import { clusterKinds, Endpoints, type EndpointsObject, Secret, Service } from '../../src/vcluster/sync/kinds.ts'

type Prepare = NonNullable<Kind['prepare']>
type Validate = NonNullable<Kind['validate']>

const withProtocol = <T extends object>(ports: readonly T[] = []) => ports.map(port => ({ protocol: 'TCP', ...port }))

const prepareEndpoints: Prepare = next => {
  const { subsets } = next as EndpointsObject
  if (!subsets) return next
  return { ...next, subsets: subsets.map(one => ({ ...one, ports: withProtocol(one.ports) })) } as Resource
}

const special = /^(127\.|169\.254\.|224\.0\.0\.|0\.0\.0\.0$)/
const validateEndpoints: Validate = (next, old) => [
  ...(Endpoints.validate?.(next, old) ?? []),
  ...((next as EndpointsObject).subsets ?? []).flatMap(({ addresses = [] }, index) =>
    addresses.flatMap(({ ip = '' }, at) =>
      isIPv4(ip) && special.test(ip)
        ? [invalidValue(`subsets[${index}].addresses[${at}].ip`, ip, 'may not be in the loopback range')]
        : [],
    ),
  ),
]

let addresses = 0
const prepareService: Prepare = (next, old) => {
  const spec = (next.spec ?? {}) as JsonObject
  const given = (old?.spec as JsonObject | undefined)?.['clusterIP'] ?? `10.96.${++addresses >> 8}.${addresses & 255}`
  const defaults = { clusterIP: given, clusterIPs: [given], type: 'ClusterIP', sessionAffinity: 'None' }
  return { ...next, spec: { ...defaults, ...spec, ports: withProtocol(spec['ports'] as object[]) } } as Resource
}

const tokenType = 'kubernetes.io/service-account-token'
const validateSecret: Validate = next =>
  (next as { readonly type?: string }).type === tokenType &&
  !next.metadata.annotations?.['kubernetes.io/service-account.name']
    ? [invalidValue('metadata.annotations[kubernetes.io/service-account.name]', '', 'is required')]
    : []

const rules = new Map<Kind, Partial<Kind>>([
  [Endpoints, { prepare: prepareEndpoints, validate: validateEndpoints }],
  [Service, { prepare: prepareService }],
  [Secret, { validate: validateSecret }],
])
export const kubeKinds: readonly Kind[] = clusterKinds.map(kind => ({ ...kind, ...rules.get(kind) }))

/** Deletes the Endpoints of a deleted Service. */
export function withoutLeftEndpoints(resources: Resources): Resources {
  const endpoints = kubeKinds.find(({ kind }) => kind === 'Endpoints') ?? Endpoints
  return {
    ...resources,
    delete: async (kind, ref, options) => {
      const answer = await resources.delete(kind, ref, options)
      if (kind.kind === 'Service' && !options?.dryRun) await resources.delete(endpoints, ref).catch(() => {})
      return answer
    },
  }
}
