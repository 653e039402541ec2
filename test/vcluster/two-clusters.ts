// Two clusters and a syncer between them, for tests of patches and references.

import assert from 'node:assert/strict'
import { afterEach, beforeEach } from 'node:test'
import type { Kind } from '../../src/api/kind.ts'
import type { JsonObject, Resource } from '../../src/api/object.ts'
import { loadConfig } from '../../src/vcluster/config/config.ts'
import type { Patch } from '../../src/vcluster/patch/patch.ts'
import { Event } from '../../src/vcluster/sync/kinds.ts'
import { hostName } from '../../src/vcluster/sync/names.ts'
import type { Syncer } from '../../src/vcluster/sync/sync.ts'
import { type OpenSyncOptions, openSync } from '../../src/vcluster/sync/sync.ts'
import { type Cluster, endpoints, openCluster, people, until } from '../support/cluster.ts'

type Condition = { readonly type: string; readonly status: string; readonly reason: string; readonly message: string }
type Told = { readonly reason: string; readonly message: string }

/** Opens new clusters for every test of the suite. The virtual cluster is `vc` in the namespace `team`. */
export function twoClusters(kinds?: readonly Kind[]) {
  let clusters: Cluster[] = []
  let running: Syncer | undefined
  let logged: string[] = []
  const side = (which: 0 | 1) => clusters[which] as Cluster
  const [v, h] = [() => people(side(0), kinds), () => people(side(1), kinds)]
  const at = { namespace: 'default', name: 'web' }
  const hostAt = { namespace: 'team', name: hostName('web', 'default', 'vc') }
  const stop = async () => {
    await running?.stop()
    running = undefined
  }
  beforeEach(async () => {
    clusters = await Promise.all([openCluster(kinds), openCluster(kinds)])
    logged = []
  })
  afterEach(async () => {
    await stop()
    await Promise.all(clusters.map(cluster => cluster.close()))
  })
  const conditions = async (): Promise<readonly Condition[]> =>
    JSON.parse((await v().get(at))?.metadata.annotations?.['vcluster.platform.sh/conditions'] ?? '[]')
  const condition = async (type: string) => (await conditions()).find(one => one.type === type)
  return {
    v,
    h,
    at,
    hostAt,
    stop,
    conditions,
    condition,
    side,
    logged: () => logged,
    sync: () => running as Syncer,
    onHost: () => h().get(hostAt),
    /** Waits for the condition about references. */
    unresolved: (names: RegExp) =>
      until(`unresolved: ${names}`, async () => {
        const found = await condition('ReferencesResolved')
        return found && names.test(found.message) && found
      }),
    resolved: () => until('no condition', async () => (await conditions()).length === 0),
    events: async () => (await v().list(Event)) as unknown as readonly Told[],
    /** Creates the Service and the Endpoints `web`. */
    make: async (over: { readonly [key: string]: unknown } = {}) => {
      await v().service('web')
      await v().create(endpoints('web', over))
    },
    annotate: (annotations: { readonly [key: string]: string | null }) =>
      v().patch(at, { metadata: { annotations } } as unknown as JsonObject),
    start: async (patches: readonly Patch[], over: Partial<OpenSyncOptions> = {}, toHost: object = {}) => {
      const text = JSON.stringify({ sync: { toHost: { ...toHost, endpoints: { patches } } } })
      const { config, problems } = loadConfig(new TextEncoder().encode(text), { noPatchesReason: undefined })
      assert.deepEqual(problems, [])
      running = await openSync({
        config,
        ...{ name: 'vc', namespace: 'team', virtual: side(0).resources, host: side(1).resources },
        discoverHost: async () => ({ addresses: [], owner: undefined }),
        ...{ importAllow: [], reportToTenant: true, instance: 'test', now: Date.now, random: () => 0 },
        ticks: () => performance.now(),
        wait: () => new Promise(setImmediate),
        pollReferencesEvery: 100,
        observer: {
          ...{ wrote: () => {}, lag: () => {}, patched: () => {}, orphaned: () => {} },
          failed: (what, error) => void logged.push(`${what}: ${(error as Error).message}`),
          syncFailure: (_, { reason, message, logged: more = message }) => void logged.push(`${reason}: ${more}`),
        },
        ...over,
      })
    },
  }
}

/** An object with data, such as a ConfigMap. */
export const dataObject = (kind: string, namespace: string, name: string, more: object = {}): Resource =>
  ({ apiVersion: 'v1', kind, metadata: { namespace, name }, data: { a: 'Yg==' }, ...more }) as unknown as Resource
