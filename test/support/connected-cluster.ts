// A Kubernetes cluster to connect: this project's server with the kinds of the agent's manifests, over real sockets.
// Unlike the management API, it accepts labels of platform.sh, because it is another server.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Kind } from '../../src/api/kind.ts'
import { prefix } from '../../src/api/paths.ts'
import type { Resources } from '../../src/api/resources.ts'
import { agentKinds, manifestKinds } from '../../src/cli/clusters/kube-kinds.ts'
import { Lease } from '../../src/vcluster/sync/kinds.ts'
import { buildApiServer, openFront } from './in-process.ts'
import { kubeconfigOf } from './kubeconfig.ts'

const connectableKinds: readonly Kind[] = [...new Set([...manifestKinds, ...agentKinds])]

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
  /** Every object, as kind/namespace/name. Without Leases, which a real cluster deletes with their namespace. */
  objects(): Promise<string[]>
  close(): Promise<void>
}

export async function openConnectable(directory: string, file = 'kube.config'): Promise<ConnectableCluster> {
  const clock = { now: Date.now, forward: () => {} }
  const apiServer = await buildApiServer({ onlyKinds: [...connectableKinds, Lease], clock })
  const resources = apiServer.internalClient
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
