// The syncer ends in the middle of everything it does, before and after every write, and the next one brings it to the
// same end. Compared object by object with a run that was never disturbed.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import type { Resource } from '../../src/api/object.ts'
import type { Resources } from '../../src/api/resources.ts'
import type { EndpointSync } from '../../src/vcluster/sync/endpoint-sync.ts'
import { type SyncOptions, startEndpointSync } from '../../src/vcluster/sync/endpoints-controller.ts'
import { endpointsKind } from '../../src/vcluster/sync/endpoints-kind.ts'
import { type EndpointsObject, Service } from '../../src/vcluster/sync/kinds.ts'
import { hostName } from '../../src/vcluster/sync/names.ts'
import { type Cluster, endpoints, openCluster, people, sideBySide, until } from '../support/cluster.ts'

type People = ReturnType<typeof people>
type Scenario = {
  readonly name: string
  readonly policy?: 'Propagate'
  /** In order before the change. */
  readonly given: (v: People) => Promise<unknown>
  /** While the syncer runs. */
  readonly change: (v: People, h: People) => Promise<unknown>
}

const at = { namespace: 'default', name: 'web' }
const hostAt = { namespace: 'team', name: hostName('web', 'default', 'vc') }
const other = { subsets: [{ addresses: [{ ip: '10.0.0.2' }], ports: [{ port: 81 }] }] }
const web = { metadata: { labels: { a: '1', b: '1' } } }
const make = async (v: People) => {
  await v.service('web')
  await v.create(endpoints('web', web))
}

const scenarios: readonly Scenario[] = [
  { name: 'create', given: async () => {}, change: make },
  { name: 'update', given: make, change: v => v.patch(at, { ...other, metadata: { labels: { a: '2' } } }) },
  { name: 'delete', given: make, change: v => v.remove(at) },
  { name: 'selector on', given: make, change: v => v.patch(at, { spec: { selector: { x: 'y' } } }, Service) },
  {
    name: 'selector off',
    given: async v => {
      await v.service('web', { x: 'y' })
      await v.create(endpoints('web', web))
    },
    change: v => v.patch(at, { spec: { selector: null } }, Service),
  },
  { name: 'Service after Endpoints', given: v => v.create(endpoints('web', web)), change: v => v.service('web') },
  { name: 'Service gone', given: make, change: v => v.remove(at, Service) },
  { name: 'host edit of subsets', given: make, change: (_, h) => h.patch(hostAt, other) },
  {
    name: 'host edit of labels',
    given: make,
    change: (_, h) => h.patch(hostAt, { metadata: { labels: { a: 'host', b: null, c: 'host' } } }),
  },
  {
    name: 'edits of labels on both sides',
    given: make,
    change: async (v, h) => {
      await v.patch(at, { metadata: { labels: { a: 'virtual' } } })
      await h.patch(hostAt, { metadata: { labels: { c: 'host' } } })
    },
  },
  { name: 'host delete', given: make, change: (_, h) => h.remove(hostAt) },
  { name: 'host delete, propagated', policy: 'Propagate', given: make, change: (_, h) => h.remove(hostAt) },
  {
    name: 'selector on, with marks to propagate',
    policy: 'Propagate',
    given: make,
    change: v => v.patch(at, { spec: { selector: { x: 'y' } } }, Service),
  },
  { name: 'create, with marks to propagate', policy: 'Propagate', given: async () => {}, change: make },
  {
    name: 'uid change',
    given: make,
    change: async v => {
      await v.remove(at)
      await v.create(endpoints('web', other))
    },
  },
]

/** Allows this many writes, and then none: later requests get no response, as after a crash. */
function mortal(clusters: readonly Cluster[], writes: number, when: 'before' | 'after') {
  let left = writes
  let died: () => void = () => {}
  const dead = new Promise<void>(resolve => {
    died = resolve
  })
  const never = new Promise<never>(() => {})
  const wrap = ({ resources }: Cluster): Resources => {
    const write = async <T>(run: () => Promise<T>): Promise<T> => {
      if (left < 0) return never
      if (left === 0 && when === 'before') {
        left = -1
        died()
        return never
      }
      const result = await run()
      if (left-- > 0) return result
      left = -1
      died()
      return never
    }
    return {
      ...resources,
      create: (...args) => write(() => resources.create(...args)),
      update: (...args) => write(() => resources.update(...args)),
      delete: (...args) => write(() => resources.delete(...args)),
    }
  }
  return { dead, sides: clusters.map(wrap) }
}

type State = { readonly virtual: readonly unknown[]; readonly host: readonly unknown[] }
type Crash = { readonly writes: number; readonly when: 'before' | 'after'; readonly expected: State }

async function run(scenario: Scenario, crash?: Crash): Promise<{ readonly writes: number; readonly state: State }> {
  const [virtual, host] = await Promise.all([openCluster(), openCluster()])
  const [v, h] = [people(virtual), people(host)]
  const look = async (): Promise<State> => ({ virtual: (await v.list()).map(bare), host: (await h.list()).map(bare) })
  let writes = 0
  const start = ([one, two]: readonly Resources[] = [virtual.resources, host.resources]) =>
    startEndpointSync({ ...options(scenario, () => writes++), virtual: one as Resources, host: two as Resources })
  try {
    await scenario.given(v)
    const first = start()
    await calm(first, v, h)
    await first.stop()
    writes = 0
    if (!crash) {
      const sync = start()
      await sync.ready
      await scenario.change(v, h)
      await calm(sync, v, h, 300)
      await sync.stop()
    } else {
      const { dead, sides } = mortal([virtual, host], crash.writes, crash.when)
      const doomed = start(sides)
      await doomed.ready
      await scenario.change(v, h)
      const survived = calm(doomed, v, h)
      await Promise.race([dead, survived])
      void doomed.stop()
      const next = start()
      await calm(next, v, h)
      // On a busy machine, an event may arrive after the calm. If the state stays different, the test shows the difference.
      await until('the state', async () => isDeepStrictEqual(await look(), crash.expected)).catch(() => {})
      await next.stop()
    }
    return { writes, state: await look() }
  } finally {
    await Promise.all([virtual.close(), host.close()])
  }
}

const options = (scenario: Scenario, wrote: () => void): Omit<SyncOptions, 'virtual' | 'host'> => ({
  hostNamespaces: ['team'],
  vcluster: { name: 'vc', namespace: 'team' },
  synced: endpointsKind,
  hostDeletePolicy: scenario.policy ?? 'Recreate',
  owner: undefined,
  denyReason: () => undefined,
  now: Date.now,
  reportToTenant: true,
  instance: 'test',
  random: () => 0,
  ticks: () => performance.now(),
  observer: { wrote, lag: () => {}, failed: () => {}, syncFailure: () => {} },
})

/** Nothing has changed on either side for a while, and nothing waits. */
async function calm(sync: EndpointSync, v: People, h: People, milliseconds = 30): Promise<void> {
  await sync.ready
  let [last, since] = ['', 0]
  await until('calm', async () => {
    const versions = [...(await v.list()), ...(await h.list())].map(object => object.metadata.resourceVersion)
    const now = JSON.stringify(versions)
    if (now !== last || sync.depth > 0 || sync.failures().length) [last, since] = [now, Date.now()]
    return Date.now() - since > milliseconds
  })
}

/** Without what differs between any two runs: uids, versions and times. */
function bare(object: EndpointsObject): unknown {
  const {
    uid: _,
    resourceVersion: __,
    creationTimestamp: ___,
    managedFields: ____,
    generation: _____,
    ...metadata
  } = object.metadata
  const annotations = Object.fromEntries(
    Object.entries((metadata as Resource['metadata']).annotations ?? {}).map(([key, value]) => [
      key,
      /uid$/.test(key) ? 'some' : value,
    ]),
  )
  return { ...object, metadata: { ...metadata, annotations } }
}

describe('a restart in the middle of', { timeout: 600_000, concurrency: sideBySide(4) }, () => {
  for (const scenario of scenarios)
    test(scenario.name, async () => {
      const { writes, state } = await run(scenario)
      for (let n = 0; n <= writes; n++)
        for (const when of ['before', 'after'] as const) {
          const crashed = await run(scenario, { writes: n, when, expected: state })
          assert.deepEqual(crashed.state, state, `${when} write ${n} of ${writes}`)
        }
    })
})
