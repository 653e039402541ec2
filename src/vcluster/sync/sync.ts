// From a configuration and the two clusters to a running syncer: patches, guard, owner and what else it needs. bin/sync.ts calls it.

import type { JsonObject } from '../../api/object.ts'
import type { Resources } from '../../api/resources.ts'
import { addressGuard } from '../config/address-policy.ts'
import type { Config } from '../config/config.ts'
import { keyPolicy } from '../config/metadata-keys.ts'
import { namespaceMap } from '../config/namespaces.ts'
import { openPatcher, type Patched, type Patcher } from '../patch/apply.ts'
import type { Patch } from '../patch/patch.ts'
import { openSandbox, type Sandbox } from '../patch/sandbox.ts'
import { type EndpointSync, type Observer, startEndpointSync } from './endpoints-controller.ts'
import type { Known, Learn } from './host-discovery.ts'
import { findLeft, type Left } from './orphans.ts'
import { openReferents } from './reference-sync.ts'
import { objectProblem } from './validate-endpoints.ts'

export type OpenSyncOptions = {
  readonly config: Config
  readonly name: string
  readonly namespace: string
  readonly virtual: Resources
  readonly host: Resources
  /** Outlives a change of the configuration, so that what was learned does, too. */
  readonly learn: Learn
  /** Kinds, or kind/name, that may be imported from the host. */
  readonly importAllow: readonly string[]
  /** Whether Events and conditions are written. */
  readonly tell: boolean
  readonly instance: string
  readonly now: () => number
  readonly random: () => number
  readonly ticks: () => number
  readonly wait: (milliseconds: number) => Promise<void>
  /** Milliseconds between two looks at what is known of the host; default: a minute. */
  readonly learnEvery?: number
  readonly observer: Observer & {
    readonly patched: (result: Patched, seconds: number) => void
    /** Told once, after both sides were listed. */
    readonly leftBehind: (found: readonly Left[]) => void
  }
}

/** Resolves once the host has answered what must be known of it first; tries for as long as it is away. */
export async function openSync(options: OpenSyncOptions): Promise<EndpointSync> {
  const { config, name, namespace, host } = options
  const { endpoints, namespaces, configMaps, secrets } = config.sync.toHost
  const map = namespaces.enabled ? namespaceMap(namespaces.mappings.byName) : undefined
  const vcluster = { name, namespace, mapped: map?.toHost }
  let known = await retried(options, 'asking the host', () => options.learn(host))
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
  const guardOf = ({ addresses }: Known) =>
    addressGuard({ allowed: endpoints.allowedCIDRs, denied: endpoints.deniedCIDRs, apiServer: addresses })
  let guard = guardOf(known)
  const crosses = keyPolicy({ allowed: endpoints.allowedMetadataKeys, denied: endpoints.deniedMetadataKeys })
  const sync = startEndpointSync({
    ...options,
    vcluster,
    hostNamespaces: map ? (map.hostNamespaces ?? ['']) : [namespace],
    hostDeletePolicy: endpoints.hostDeletePolicy,
    // Asked every time: a Service that was made again is another owner, and objects of a dead one are swept away.
    get owner() {
      return known.owner
    },
    refuses: address => guard(address),
    crosses,
    patcher,
    bringAlong: openReferents({
      virtual: options.virtual,
      host,
      vcluster,
      get owner() {
        return known.owner
      },
      pushes: { ConfigMap: configMaps.enabled, Secret: secrets.enabled },
      importAllow: options.importAllow,
      crosses,
    }),
  })
  const hear = (next: Known) => {
    if (JSON.stringify(next) === JSON.stringify(known)) return
    known = next
    guard = guardOf(next)
    sync.lookAtAll()
  }
  const away = (error: unknown) => options.observer.failed('asking the host', error)
  const learning = setInterval(
    () => void options.learn(host).then(hear).catch(away),
    options.learnEvery ?? 60_000,
  ).unref()
  let isStopped = false
  const lookForLeft = async () => {
    await sync.ready
    const what = 'looking for what was left behind'
    const found = await retried(options, what, async () =>
      isStopped ? [] : findLeft({ host, known: sync.known, vcluster }),
    )
    if (!isStopped) options.observer.leftBehind(found)
  }
  // Told to stop while it waits to try again.
  lookForLeft().catch(() => {})
  return {
    ...sync,
    get depth() {
      return sync.depth
    },
    async stop() {
      isStopped = true
      clearInterval(learning)
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
