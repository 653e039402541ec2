// Builds a running syncer from a configuration and two clusters.

import type { Kind } from '../../api/kind.ts'
import type { JsonObject } from '../../api/object.ts'
import type { Resources } from '../../api/resources.ts'
import type { Discover } from '../../transport/open-cluster.ts'
import { addressGuard } from '../config/address-policy.ts'
import type { Config } from '../config/config.ts'
import { keyPolicy } from '../config/metadata-keys.ts'
import { namespaceMap } from '../config/namespaces.ts'
import type { KindName } from '../config/reference-kinds.ts'
import { openPatcher, type Patched, type Patcher } from '../patch/apply.ts'
import type { Patch } from '../patch/patch.ts'
import { openSandbox, type Sandbox } from '../patch/sandbox.ts'
import { endpointSlicesKind } from './endpoint-slices-kind.ts'
import type { EndpointSync } from './endpoint-sync.ts'
import { type Observer, startEndpointSync, type Trace } from './endpoints-controller.ts'
import { endpointsKind } from './endpoints-kind.ts'
import type { DiscoverHost, HostInfo } from './host-discovery.ts'
import type { SyncedObject } from './kinds.ts'
import { findOrphans, type Orphans } from './orphans.ts'
import type { State } from './plan.ts'
import { openReferenceSync } from './reference-sync.ts'
import type { SyncedKind } from './synced-kind.ts'
import { objectProblem } from './validate-endpoints.ts'

export type OpenSyncOptions = {
  readonly config: Config
  readonly name: string
  readonly namespace: string
  readonly virtual: Resources
  readonly host: Resources
  /** Shared across configuration reloads, so that discovered addresses are kept. */
  readonly discoverHost: DiscoverHost
  /** Objects that may be imported from the host: `KIND`, `KIND/NAME` or `KIND/PREFIX*`. */
  readonly importAllow: readonly string[]
  /** Kinds that are synced to the host for references, besides ConfigMaps and Secrets. */
  readonly syncReferences?: readonly KindName[]
  /** Required for `syncReferences`. */
  readonly discover?: { readonly virtual: Discover; readonly host: Discover }
  /** Whether to write Events and conditions. */
  readonly reportToTenant: boolean
  readonly instance: string
  readonly now: () => number
  readonly random: () => number
  readonly ticks: () => number
  readonly wait: (milliseconds: number) => Promise<void>
  /** Runs the sync of an object as a trace; absent: tracing is off. */
  readonly trace?: Trace | undefined
  /** Milliseconds between two discoveries of the host; default: one minute. */
  readonly discoverEvery?: number
  /** Milliseconds between two checks of referenced objects; default: 30 seconds. */
  readonly pollReferencesEvery?: number
  readonly observer: Observer & {
    readonly patched: (result: Patched, seconds: number) => void
    /** Called once, after both sides are listed. */
    readonly orphaned: (found: readonly Orphans[]) => void
  }
}

/** The syncs of all enabled kinds. */
export type Syncer = Omit<EndpointSync, 'known'> & {
  /** Objects of the host in the caches, by kind. */
  hostObjects(): readonly { readonly kind: Kind; readonly objects: Iterable<SyncedObject> }[]
}

/** Resolves after the first discovery of the host. Retries while the host is unreachable. */
export async function openSync(given: OpenSyncOptions): Promise<Syncer> {
  let isStopped = false
  const failed: Observer['failed'] = (what, error) => {
    // Requests that are still pending at the stop fail when the client closes. No retry follows.
    if (!isStopped) given.observer.failed(what, error)
  }
  const options = { ...given, observer: { ...given.observer, failed } }
  const { config, name, namespace, host } = options
  const { endpoints, namespaces, configMaps, secrets } = config.sync.toHost
  const map = namespaces.enabled ? namespaceMap(namespaces.mappings.byName) : undefined
  const vcluster = { name, namespace, mapped: map?.toHost }
  let known = await withRetry(options, 'discover the host', () => options.discoverHost(host))
  const isSyncedKey = keyPolicy({ allowed: endpoints.allowedMetadataKeys, denied: endpoints.deniedMetadataKeys })
  const references = openReferenceSync({
    virtual: options.virtual,
    host,
    vcluster,
    get owner() {
      return known.owner
    },
    pushes: { ConfigMap: configMaps.enabled, Secret: secrets.enabled },
    syncReferences: options.syncReferences,
    discover: options.discover,
    importAllow: options.importAllow,
    isSyncedKey,
  })
  const syncedKinds = [endpointsKind, endpointSlicesKind].filter(({ setting }) => config.sync.toHost[setting].enabled)
  const patchesOf = ({ setting }: SyncedKind) => config.sync.toHost[setting].patches as readonly Patch[]
  const sandbox = syncedKinds.some(synced => patchesOf(synced).length) ? await startSandbox(options) : undefined
  const patcherFor = (synced: SyncedKind) =>
    sandbox && patchesOf(synced).length
      ? observed(
          openPatcher({
            patches: patchesOf(synced),
            vcluster: { name, namespace, config: config as unknown as JsonObject },
            ...(map ? { multiNamespace: map } : {}),
            sandbox,
            isImportedByName: references.isImportedByName,
            validate: object => [objectProblem(object)].filter(problem => problem !== undefined),
          }),
          options,
        )
      : undefined
  const guardOf = ({ addresses }: HostInfo) =>
    addressGuard({ allowed: endpoints.allowedCIDRs, denied: endpoints.deniedCIDRs, apiServer: addresses })
  let guard = guardOf(known)
  const syncs = syncedKinds.map(synced => ({
    kind: synced.kind,
    sync: startEndpointSync({
      ...options,
      synced,
      vcluster,
      hostNamespaces: map ? (map.hostNamespaces ?? ['']) : [namespace],
      hostDeletePolicy: endpoints.hostDeletePolicy,
      // A getter: a recreated Service is a new owner, and objects of the old owner are garbage collected.
      get owner() {
        return known.owner
      },
      denyReason: address => guard(address),
      isSyncedKey,
      patcher: patcherFor(synced),
      syncReference: references.sync,
    }),
  }))
  const update = (next: HostInfo) => {
    if (JSON.stringify(next) === JSON.stringify(known)) return
    known = next
    guard = guardOf(next)
    for (const { sync } of syncs) sync.resyncAll()
  }
  const discoveryFailed = (error: unknown) => options.observer.failed('discover the host', error)
  const discovery = setInterval(
    () => void options.discoverHost(host).then(update).catch(discoveryFailed),
    options.discoverEvery ?? 60_000,
  ).unref()
  const lookForOrphans = async () => {
    await Promise.all(syncs.map(({ sync }) => sync.ready))
    const found = await withRetry(options, 'find orphans', async () =>
      isStopped
        ? []
        : Promise.all(syncs.map(({ kind, sync }) => findOrphans({ kind, host, known: sync.known, vcluster }))),
    )
    if (!isStopped) options.observer.orphaned(found.flat())
  }
  // Rejects only if it is stopped during a retry.
  lookForOrphans().catch(() => {})
  return combined(syncs, async () => {
    isStopped = true
    clearInterval(discovery)
    await Promise.all(syncs.map(({ sync }) => sync.stop()))
    await sandbox?.close()
  })
}

type KindSync = { readonly kind: Kind; readonly sync: EndpointSync }

function combined(kindSyncs: readonly KindSync[], stop: () => Promise<void>): Syncer {
  const syncs = kindSyncs.map(({ sync }) => sync)
  return {
    hostObjects: () => kindSyncs.map(({ kind, sync }) => ({ kind, objects: sync.known.host() })),
    ready: Promise.all(syncs.map(({ ready }) => ready)).then(() => {}),
    settled: async () => void (await Promise.all(syncs.map(sync => sync.settled()))),
    failures: () => syncs.flatMap(sync => sync.failures()),
    states: () => {
      const counts = new Map<State, number>()
      for (const sync of syncs)
        for (const [state, count] of sync.states()) counts.set(state, (counts.get(state) ?? 0) + count)
      return counts
    },
    resyncAll: () => {
      for (const sync of syncs) sync.resyncAll()
    },
    get depth() {
      return syncs.reduce((sum, { depth }) => sum + depth, 0)
    },
    stop,
  }
}

/** Starts the threads before the first object, so that a failure shows early. */
async function startSandbox(options: OpenSyncOptions): Promise<Sandbox> {
  const sandbox = openSandbox()
  try {
    await withRetry(options, 'start the patch sandbox', sandbox.start)
    return sandbox
  } catch (error) {
    await sandbox.close()
    throw error
  }
}

const maxDelay = 10_000

async function withRetry<T>({ wait, observer }: OpenSyncOptions, what: string, work: () => Promise<T>): Promise<T> {
  for (let delay = 100; ; delay = Math.min(delay * 2, maxDelay)) {
    try {
      return await work()
    } catch (error) {
      observer.failed(what, error)
      await wait(delay)
    }
  }
}

function observed(patcher: Patcher, { observer, ticks }: OpenSyncOptions): Patcher {
  const timed = async (run: Promise<Patched>): Promise<Patched> => {
    const start = ticks()
    const result = await run
    observer.patched(result, (ticks() - start) / 1000)
    return result
  }
  return {
    ...patcher,
    toHost: input => timed(patcher.toHost(input)),
    toVirtual: input => timed(patcher.toVirtual(input)),
  }
}
