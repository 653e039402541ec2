// From a configuration and the two clusters to a running syncer: patches, guard, owner and what else it needs. bin/sync.ts calls it.

import { isIP } from 'node:net'
import { ApiError } from '../api/errors.ts'
import type { JsonObject, OwnerReference, Resource } from '../api/object.ts'
import type { Resources } from '../api/resources.ts'
import type { Config } from './config.ts'
import { type EndpointSync, type Observer, startEndpointSync } from './endpoints.ts'
import { Endpoints, type EndpointsObject, Service } from './kinds.ts'
import { namespaceMap } from './namespaces.ts'
import { addressGuard } from './networks.ts'
import { objectProblem } from './object-problem.ts'
import { openPatcher, type Patched, type Patcher } from './patch/apply.ts'
import type { Patch } from './patch/patch.ts'
import { openSandbox, type Sandbox } from './patch/sandbox.ts'
import { openReferents } from './referents.ts'

export type OpenSyncOptions = {
  readonly config: Config
  readonly name: string
  readonly namespace: string
  readonly virtual: Resources
  readonly host: Resources
  /** URL of the host's API server. */
  readonly hostServer: string
  /** Addresses of a name. */
  readonly lookup: (name: string) => Promise<readonly string[]>
  /** Kinds, or kind/name, that may be imported from the host. */
  readonly importAllow: readonly string[]
  /** Whether Events and conditions are written. */
  readonly tell: boolean
  readonly instance: string
  readonly now: () => number
  readonly random: () => number
  readonly wait: (milliseconds: number) => Promise<void>
  readonly observer: Observer & { readonly patched: (result: Patched, seconds: number) => void }
}

/** Resolves once the host has answered what must be known of it first; tries for as long as it is away. */
export async function openSync(options: OpenSyncOptions): Promise<EndpointSync> {
  const { config, name, namespace, host } = options
  const { endpoints, namespaces, configMaps, secrets } = config.sync.toHost
  const map = namespaces.enabled ? namespaceMap(namespaces.mappings.byName) : undefined
  const vcluster = { name, namespace, mapped: map?.toHost }
  const known = await retried(options, 'asking the host', () => learn(options))
  const sandbox = endpoints.patches.length ? await startSandbox(options) : undefined
  const patcher = sandbox
    ? observed(
        openPatcher({
          patches: endpoints.patches as readonly Patch[],
          vcluster: { name, namespace, config: config as unknown as JsonObject },
          ...(map ? { multiNamespace: map } : {}),
          sandbox,
          validate: object => [objectProblem(object)].filter(problem => problem !== undefined),
        }),
        options,
      )
    : undefined
  const sync = startEndpointSync({
    ...options,
    vcluster,
    hostNamespaces: map ? (map.hostNamespaces ?? ['']) : [namespace],
    hostDeletePolicy: endpoints.hostDeletePolicy,
    owner: known.owner,
    refuses: addressGuard({
      allowed: endpoints.allowedCIDRs,
      denied: endpoints.deniedCIDRs,
      apiServer: known.addresses,
    }),
    patcher,
    bringAlong: openReferents({
      virtual: options.virtual,
      host,
      vcluster,
      owner: known.owner,
      pushes: { ConfigMap: configMaps.enabled, Secret: secrets.enabled },
      importAllow: options.importAllow,
    }),
  })
  return {
    ...sync,
    get depth() {
      return sync.depth
    },
    async stop() {
      await sync.stop()
      await patcher?.close()
    },
  }
}

/** Its threads are there before the first object is, and a machine that does not give them is told of at once. */
async function startSandbox(options: OpenSyncOptions): Promise<Sandbox> {
  const sandbox = openSandbox()
  try {
    await retried(options, 'starting the sandbox for patches', sandbox.start)
    return sandbox
  } catch (error) {
    await sandbox.close()
    throw error
  }
}

type Known = { readonly addresses: readonly string[]; readonly owner: OwnerReference | undefined }

/** Where the host's API server is, and which Service is the virtual cluster's own. */
async function learn({ host, hostServer, lookup, name, namespace }: OpenSyncOptions): Promise<Known> {
  const own = new URL(hostServer).hostname.replace(/^\[|\]$/g, '')
  const [named, listed, service, owner] = await Promise.all([
    isIP(own) ? [own] : lookup(own).catch(() => []),
    look(host, Endpoints, 'default', 'kubernetes'),
    look(host, Service, 'default', 'kubernetes'),
    look(host, Service, namespace, name),
  ])
  const subsets = (listed as EndpointsObject | undefined)?.subsets ?? []
  const { clusterIPs = [] } = (service?.spec ?? {}) as { readonly clusterIPs?: readonly string[] }
  const uid = owner?.metadata.uid
  return {
    addresses: [
      ...named,
      ...subsets.flatMap(({ addresses = [] }) => addresses.map(({ ip = '' }) => ip)),
      ...clusterIPs,
    ],
    owner: uid ? { apiVersion: 'v1', kind: 'Service', name, uid } : undefined,
  }
}

/** undefined: it is not there, or not ours to see. */
async function look(
  resources: Resources,
  kind: typeof Service,
  namespace: string,
  name: string,
): Promise<Resource | undefined> {
  try {
    return (await resources.get(kind, { namespace, name })).object
  } catch (error) {
    if (error instanceof ApiError && (error.code === 404 || error.code === 403)) return undefined
    throw error
  }
}

const slowest = 10_000

async function retried<T>({ wait, observer }: OpenSyncOptions, what: string, work: () => Promise<T>): Promise<T> {
  for (let delay = 100; ; delay = Math.min(delay * 2, slowest)) {
    try {
      return await work()
    } catch (error) {
      observer.failed(what, error)
      await wait(delay)
    }
  }
}

function observed(patcher: Patcher, { observer, now }: OpenSyncOptions): Patcher {
  const timed = async (run: Promise<Patched>): Promise<Patched> => {
    const start = now()
    const result = await run
    observer.patched(result, (now() - start) / 1000)
    return result
  }
  return {
    ...patcher,
    toHost: input => timed(patcher.toHost(input)),
    toVirtual: input => timed(patcher.toVirtual(input)),
  }
}
