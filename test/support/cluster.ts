// A cluster for the syncer: this project's server with Kubernetes' own kinds, in this process, over real sockets; or, where
// KUBE_APISERVER and ETCD name binaries, a real one.

import type { Json, Ref, Resource } from '../../src/api/object.ts'
import { prefix } from '../../src/api/paths.ts'
import type { Resources } from '../../src/api/resources.ts'
import { connect } from '../../src/client/connect.ts'
import type { Access } from '../../src/kubeconfig/access.ts'
import { openTransport } from '../../src/kubeconfig/transport.ts'
import { clusterKinds, Endpoints, type EndpointsObject, Service } from '../../src/vcluster/kinds.ts'
import { openFront, openHouse } from './in-process.ts'
import { isKube, startKube } from './kube-cluster.ts'

export type Cluster = {
  /** As a kubeconfig names it. */
  readonly server: string
  /** Through the transport that kubeconfigs open. */
  readonly resources: Resources
  close(): Promise<void>
}

/** Real ones are used again, emptied: starting one takes seconds. */
const idle: Access[] = []

async function openKube(): Promise<Cluster> {
  const access = idle.pop() ?? (await startKube())
  const { resources, close } = reachWith(access)
  return {
    server: access.server,
    resources,
    async close() {
      for (const kind of clusterKinds)
        for (const { object } of (await resources.list(kind)).items) {
          const { namespace = '', name = '', finalizers } = object.metadata
          if (namespace === 'default' && name === 'kubernetes') continue
          if (finalizers)
            await resources.patch(
              kind,
              { namespace, name },
              { type: 'merge', body: { metadata: { finalizers: null } } },
            )
          await resources.delete(kind, { namespace, name }).catch(() => {})
        }
      close()
      idle.push(access)
    },
  }
}

export async function openCluster(): Promise<Cluster> {
  if (isKube) return openKube()
  const clock = { now: Date.now, forward: () => {} }
  const house = await openHouse({ kinds: clusterKinds, clock })
  const front = await openFront(house)
  const server = `${front.url}${prefix}`
  const { resources, close } = reach(server)
  return {
    server,
    resources,
    async close() {
      close()
      await front.close()
      await house.close()
    },
  }
}

export const reach = (server: string) => reachWith({ server, namespace: 'default', insecure: false })

function reachWith(access: Access): { readonly resources: Resources; close(): void } {
  const transport = openTransport(access, { env: {}, now: Date.now })
  return { resources: connect({ url: access.server, below: '', fetch: transport.fetch }), close: transport.close }
}

type Wanted = { readonly [key: string]: unknown }

export const endpoints = (name: string, over: Wanted = {}, namespace = 'default'): EndpointsObject =>
  ({
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: { name, namespace, ...(over['metadata'] as object) },
    subsets: over['subsets'] ?? [{ addresses: [{ ip: '10.0.0.1' }], ports: [{ port: 80 }] }],
  }) as EndpointsObject

export const service = (name: string, selector?: object, namespace = 'default'): Resource =>
  ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace },
    spec: { ports: [{ port: 80 }], ...(selector ? { selector } : {}) },
  }) as unknown as Resource

/** Everything that has a name, short. */
export function people({ resources }: { readonly resources: Resources }) {
  const kindOf = (object: Resource) => clusterKinds.find(({ kind }) => kind === object.kind) ?? Endpoints
  return {
    create: async (object: Resource) =>
      (await resources.create(kindOf(object), object.metadata.namespace ?? '', object as unknown as Json)).object,
    get: async (ref: Ref, kind = Endpoints) => {
      try {
        return (await resources.get(kind, ref)).object as EndpointsObject
      } catch (error) {
        if ((error as { code?: number }).code === 404) return undefined
        throw error
      }
    },
    patch: async (ref: Ref, body: Json, kind = Endpoints) =>
      (await resources.patch(kind, ref, { type: 'merge', body })).object,
    remove: (ref: Ref, kind = Endpoints) => resources.delete(kind, ref),
    list: async (kind = Endpoints) => (await resources.list(kind)).items.map(item => item.object as EndpointsObject),
    service: async (name: string, selector?: object, namespace = 'default') =>
      (await resources.create(Service, namespace, service(name, selector, namespace) as unknown as Json)).object,
  }
}

/** Waits for what must become true; looks every few milliseconds. */
export async function until<T>(
  what: string,
  look: () => Promise<T | undefined | false>,
  milliseconds = 10_000,
): Promise<T> {
  const end = Date.now() + milliseconds
  for (;;) {
    const found = await look()
    if (found !== undefined && found !== false) return found
    if (Date.now() > end) throw new Error(`${what} did not come true within ${milliseconds} ms`)
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}
