// A cluster for the syncer: this project's server with kinds of Kubernetes, in this process, over real sockets.
// With binaries in KUBE_APISERVER and ETCD, a real one.

import { readFileSync } from 'node:fs'
import type { Kind } from '../../src/api/kind.ts'
import type { Json, Ref, Resource } from '../../src/api/object.ts'
import { prefix } from '../../src/api/paths.ts'
import type { Resources } from '../../src/api/resources.ts'
import { connect } from '../../src/client/connect.ts'
import { type Discover, openDiscovery } from '../../src/client/discovery.ts'
import type { Access } from '../../src/transport/cluster-config.ts'
import { openTransport } from '../../src/transport/transport.ts'
import { clusterKinds, Endpoints, type EndpointsObject, Service } from '../../src/vcluster/sync/kinds.ts'
import { buildApiServer, openFront } from './in-process.ts'
import { type KubeBinaries, type KubeCluster, kubeBinaries, kubeNamespaces, startKube } from './kube-cluster.ts'
import { kubeconfigOf } from './kubeconfig.ts'

export type Cluster = {
  /** The URL for a kubeconfig. */
  readonly server: string
  /** The text of a kubeconfig. */
  readonly kubeconfig: string
  /** Through the transport that the kubeconfig describes. */
  readonly resources: Resources
  readonly discover: Discover
  close(): Promise<void>
}

/** Real ones are large and slow to start. */
export const sideBySide = (wanted: number): number => (kubeBinaries ? 1 : wanted)

/** Real ones are reused after a cleanup, because a start takes seconds. */
const idle: KubeCluster[] = []

async function openKube(binaries: KubeBinaries): Promise<Cluster> {
  const kube = idle.pop() ?? (await startKube(binaries))
  const { resources, discover, close } = reachWith(kube.access)
  return {
    server: kube.access.server,
    kubeconfig: readFileSync(kube.kubeconfig, 'utf8'),
    resources,
    discover,
    async close() {
      for (const kind of clusterKinds) for (const namespace of kubeNamespaces) await empty(resources, kind, namespace)
      close()
      idle.push(kube)
    },
  }
}

/** Restores the state of a new cluster, with the Service of the API server itself. */
async function empty(resources: Resources, kind: Kind, namespace: string): Promise<void> {
  for (const { object } of (await resources.list(kind, { namespace })).items) {
    const { name = '', finalizers } = object.metadata
    if (kind === Service && namespace === 'default' && name === 'kubernetes') continue
    const body = { metadata: { finalizers: null } }
    if (finalizers) await resources.patch(kind, { namespace, name }, { type: 'merge', body })
    await resources.delete(kind, { namespace, name }).catch(() => {})
  }
}

/** With other kinds it is always this project's server, because a real one has its own. */
export async function openCluster(kinds: readonly Kind[] = clusterKinds): Promise<Cluster> {
  if (kubeBinaries && kinds === clusterKinds) return openKube(kubeBinaries)
  const clock = { now: Date.now, forward: () => {} }
  const apiServer = await buildApiServer({ kinds, clock })
  const front = await openFront(apiServer)
  const server = `${front.url}${prefix}`
  const { resources, discover, close } = reachWith({ server, namespace: 'default', insecure: false })
  return {
    server,
    kubeconfig: kubeconfigOf(server),
    resources,
    discover,
    async close() {
      close()
      await front.close()
      await apiServer.close()
    },
  }
}

export function reachWith(access: Access): {
  readonly resources: Resources
  readonly discover: Discover
  close(): void
} {
  const transport = openTransport(access, { env: {}, now: Date.now })
  const options = { url: access.server, below: '', fetch: transport.fetch }
  return { resources: connect(options), discover: openDiscovery(options), close: transport.close }
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

/** Short helpers for all kinds. */
export function people({ resources }: { readonly resources: Resources }, kinds: readonly Kind[] = clusterKinds) {
  const kindOf = (object: Resource) => kinds.find(({ kind }) => kind === object.kind) ?? Endpoints
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

/** Waits for a condition, and checks it every few milliseconds. */
export async function until<T>(
  what: string,
  look: () => Promise<T | undefined | false>,
  milliseconds = 30_000,
): Promise<T> {
  const end = Date.now() + milliseconds
  for (;;) {
    const found = await look()
    if (found !== undefined && found !== false) return found
    if (Date.now() > end) throw new Error(`${what} did not come true within ${milliseconds} ms`)
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}
