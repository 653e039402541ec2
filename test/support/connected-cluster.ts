// A Kubernetes cluster to connect: this project's server with the kinds of the agent's manifests, over real sockets.
// Unlike the management API, it accepts labels of platform.sh, because it is another server.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Kind } from '../../src/api/kind.ts'
import { prefix } from '../../src/api/paths.ts'
import type { Resources } from '../../src/api/resources.ts'
import { agentKinds, KubeNamespace, manifestKinds } from '../../src/cli/clusters/kube-kinds.ts'
import { Lease } from '../../src/vcluster/sync/kinds.ts'
import { buildApiServer, openFront } from './in-process.ts'
import { kubeconfigOf } from './kubeconfig.ts'

const connectableKinds: readonly Kind[] = [...new Set([...manifestKinds, ...agentKinds, Lease])]
const namespaces = ['default', 'shop']

export type KubeRequest = {
  readonly verb: string
  readonly group: string
  readonly resource: string
  readonly namespace: string
  readonly name: string
}

export type ConnectableCluster = {
  readonly server: string
  /** A file below the given directory. */
  readonly kubeconfig: string
  readonly resources: Resources
  /** The requests over HTTP so far. */
  readonly requests: KubeRequest[]
  /** Every object, as kind/namespace/name. */
  objects(): Promise<string[]>
  close(): Promise<void>
}

export async function openConnectable(directory: string, file = 'kube.config'): Promise<ConnectableCluster> {
  const clock = { now: Date.now, forward: () => {} }
  const apiServer = await buildApiServer({ onlyKinds: connectableKinds, clock })
  const resources = withNamespaces(apiServer.internalClient)
  for (const name of namespaces) await resources.create(KubeNamespace, '', { metadata: { name } })
  const requests: KubeRequest[] = []
  const front = await openFront({ ...apiServer, as: () => recording(resources, requests) as never })
  const server = `${front.url}${prefix}`
  const kubeconfig = join(directory, file)
  writeFileSync(kubeconfig, kubeconfigOf(server))
  return {
    server,
    kubeconfig,
    resources,
    requests,
    async objects() {
      const found: string[] = []
      for (const kind of connectableKinds)
        for (const { ref } of (await resources.list(kind)).items)
          found.push([kind.kind, ref.namespace, ref.name].filter(Boolean).join('/'))
      return found.sort()
    },
    async close() {
      await front.close()
      await apiServer.close()
    },
  }
}

/** As in Kubernetes, nothing is created outside an existing namespace, and a deleted one takes everything in it along. */
function withNamespaces(all: Resources): Resources {
  const check = async ({ namespaced }: Kind, namespace: string) => {
    if (namespaced) await all.get(KubeNamespace, { namespace: '', name: namespace })
  }
  return {
    ...all,
    async create(kind, namespace, object, options) {
      await check(kind, namespace)
      return all.create(kind, namespace, object, options)
    },
    async patch(kind, ref, patch, options) {
      await check(kind, ref.namespace)
      return all.patch(kind, ref, patch, options)
    },
    async delete(kind, ref, options) {
      const deleted = await all.delete(kind, ref, options)
      if (kind === KubeNamespace && !options?.dryRun)
        for (const one of connectableKinds) if (one.namespaced) await all.deleteCollection(one, { namespace: ref.name })
      return deleted
    },
  }
}

type Place = string | { readonly namespace?: string; readonly name?: string } | undefined

/** Every verb takes the kind first, and then a namespace, a reference or a selection. */
const recording = (resources: Resources, requests: KubeRequest[]): Resources =>
  new Proxy(resources, {
    get(target, verb) {
      const method = Reflect.get(target, verb) as unknown
      if (typeof method !== 'function') return method
      return (kind: Kind, place: Place, ...rest: unknown[]) => {
        const { namespace = '', name = '' } = typeof place === 'string' ? { namespace: place } : (place ?? {})
        requests.push({ verb: String(verb), group: kind.group, resource: kind.plural, namespace, name })
        return Reflect.apply(method, target, [kind, place, ...rest])
      }
    },
  })
