// Orphans of a changed configuration on the host are reported, and no objects of others.

import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { ApiError } from '../../src/api/errors.ts'
import type { Resources } from '../../src/api/resources.ts'
import { defaultConfig } from '../../src/vcluster/config/config.ts'
import type { Orphans } from '../../src/vcluster/sync/orphans.ts'
import type { Syncer } from '../../src/vcluster/sync/sync.ts'
import { openSync } from '../../src/vcluster/sync/sync.ts'
import { type Cluster, endpoints, openCluster, people, until } from '../support/cluster.ts'

let clusters: Cluster[] = []
let running: Syncer | undefined
let told: (readonly Orphans[])[] = []
let failures: string[] = []
const side = (which: 0 | 1) => clusters[which] as Cluster
const [v, h] = [() => people(side(0)), () => people(side(1))]

async function start(byName: { readonly [from: string]: string } | undefined, host = side(1).resources): Promise<void> {
  const config = defaultConfig()
  const namespaces = { enabled: byName !== undefined, mappings: { byName: byName ?? {} } }
  running = await openSync({
    config: { ...config, sync: { ...config.sync, toHost: { ...config.sync.toHost, namespaces } } },
    ...{ name: 'vc', namespace: 'team', virtual: side(0).resources, host },
    discoverHost: async () => ({ addresses: [], owner: undefined }),
    ...{ importAllow: [], reportToTenant: true, instance: 'test', now: Date.now, random: () => 0 },
    ticks: () => performance.now(),
    wait: () => new Promise(setImmediate),
    observer: {
      ...{ wrote: () => {}, lag: () => {}, syncFailure: () => {}, patched: () => {} },
      orphaned: found => void told.push(found),
      failed: what => void failures.push(what),
    },
  })
}
async function stop(): Promise<void> {
  await running?.stop()
  running = undefined
}
const make = async (name: string, namespace: string) => {
  await v().service(name, undefined, namespace)
  await v().create(endpoints(name, {}, namespace))
}
const found = () => until('what was left', async () => told.at(-1))

describe('the syncer reports orphans', { timeout: 120_000 }, () => {
  beforeEach(async () => {
    clusters = await Promise.all([openCluster(), openCluster()])
    told = []
    for (const name of ['web', 'api']) await make(name, 'default')
    await make('dns', 'other')
    await start({ default: 'team-default', other: 'other' })
    for (const name of ['web', 'api']) await until(name, () => h().get({ namespace: 'team-default', name }))
    await until('dns', () => h().get({ namespace: 'other', name: 'dns' }))
  })
  afterEach(async () => {
    await stop()
    await Promise.all(clusters.map(cluster => cluster.close()))
  })

  test('none if every object is in its namespace', async () => {
    assert.deepEqual(await found(), [])
  })

  test('after a removed or changed mapping: how many objects per namespace; they are not changed', async () => {
    await stop()
    const before = await h().get({ namespace: 'team-default', name: 'web' })
    told = []
    await start({ other: 'other' })
    assert.deepEqual(await found(), [{ namespace: 'team-default', from: 'default', count: 2 }])
    assert.deepEqual(await h().get({ namespace: 'team-default', name: 'web' }), before)
    await stop()
    told = []
    await start(undefined) // all in one namespace
    assert.deepEqual(await found(), [
      { namespace: 'other', from: 'other', count: 1 },
      { namespace: 'team-default', from: 'default', count: 2 },
    ])
  })

  test('no similar objects: another cluster of the same name has its own', async () => {
    await stop()
    const web = await h().get({ namespace: 'team-default', name: 'web' })
    const { labels, annotations } = web?.metadata ?? {}
    const theirs = { labels, annotations: { ...annotations, 'vcluster.platform.sh/object-uid': 'another' } }
    await h().create(endpoints('web', { metadata: theirs }, 'c'))
    told = []
    await start({ default: 'team-default', other: 'other' })
    assert.deepEqual(await found(), [])
  })

  test('within its permissions: without permission to list all namespaces, in those that it follows', async () => {
    await stop()
    const { resources } = side(1)
    const confined: Resources = {
      ...resources,
      list: (kind, options) =>
        options?.namespace ? resources.list(kind, options) : Promise.reject(new ApiError(403, 'Forbidden', 'no')),
    }
    told = []
    await start({ default: 'other', team: 'team-default' }, confined)
    assert.deepEqual(await found(), [
      { namespace: 'other', from: 'other', count: 1 },
      { namespace: 'team-default', from: 'default', count: 2 },
    ])
  })

  test('once the host is reachable', async () => {
    await stop()
    const { resources } = side(1)
    let fails = 3
    const flaky: Resources = {
      ...resources,
      list: (kind, options) =>
        options?.labelSelector && fails-- > 0
          ? Promise.reject(new ApiError(503, '', 'away'))
          : resources.list(kind, options),
    }
    told = []
    await start({ other: 'other' }, flaky)
    assert.equal((await found()).length, 1)
    assert.equal(fails, -1)
  })

  test('requests that fail after the stop are not reported, because no retry follows', async () => {
    await stop()
    const { resources } = side(1)
    const closed = Promise.withResolvers<never>()
    let isSearching = false
    let isWatching = false
    const pending: Resources = {
      ...resources,
      list: (kind, options) => {
        if (!options?.labelSelector) return resources.list(kind, options)
        isSearching = true
        return closed.promise
      },
      watch: () => {
        isWatching = true
        return closed.promise
      },
    }
    failures = []
    await start({ other: 'other' }, pending)
    await until('both requests', async () => isSearching && isWatching)
    await stop()
    closed.reject(new Error('The client is destroyed'))
    await new Promise(setImmediate)
    assert.deepEqual(failures, [])
  })
})
