// The syncer's knowledge of the host besides endpoints, its owner and the addresses of the API server, and how it follows changes.

import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { ApiError } from '../../src/api/errors.ts'
import type { Resource } from '../../src/api/object.ts'
import type { Resources } from '../../src/api/resources.ts'
import { defaultConfig } from '../../src/vcluster/config/config.ts'
import { openHostDiscovery } from '../../src/vcluster/sync/host-discovery.ts'
import { Endpoints, Service } from '../../src/vcluster/sync/kinds.ts'
import { hostName } from '../../src/vcluster/sync/names.ts'
import type { Syncer } from '../../src/vcluster/sync/sync.ts'
import { openSync } from '../../src/vcluster/sync/sync.ts'
import { type Cluster, endpoints, openCluster, people, until } from '../support/cluster.ts'

let clusters: Cluster[] = []
let running: Syncer | undefined
const side = (which: 0 | 1) => clusters[which] as Cluster
const [v, h] = [() => people(side(0)), () => people(side(1))]
const onHost = (name: string) => h().get({ namespace: 'team', name: hostName(name, 'default', 'vc') })
const ownersOf = (object: Resource | undefined) => object?.metadata.ownerReferences?.map(({ uid }) => uid)
const own = { namespace: 'team', name: 'vc' }

type Over = {
  readonly host?: Resources
  readonly hostServer?: string
  readonly lookup?: (name: string) => Promise<readonly string[]>
  readonly failed?: (error: unknown) => void
}

async function start(over: Over = {}): Promise<void> {
  const asked = { host: side(1).resources, hostServer: 'https://192.0.2.1:6443', lookup: async () => [], ...over }
  running = await openSync({
    config: defaultConfig(),
    ...own,
    virtual: side(0).resources,
    host: asked.host,
    discoverHost: openHostDiscovery({ ...asked, ...own }),
    importAllow: [],
    reportToTenant: true,
    instance: 'test',
    now: Date.now,
    random: () => 0,
    ticks: () => performance.now(),
    wait: () => Promise.resolve(),
    discoverEvery: 20,
    observer: {
      ...{ wrote: () => {}, lag: () => {}, syncFailure: () => {}, patched: () => {}, orphaned: () => {} },
      failed: (_, error) => over.failed?.(error),
    },
  })
}

const told = async (name: string) =>
  (await v().get({ namespace: 'default', name }))?.metadata.annotations?.['vcluster.platform.sh/conditions']

async function make(name: string, ip = '10.0.0.1'): Promise<void> {
  await v().service(name)
  await v().create(endpoints(name, { subsets: [{ addresses: [{ ip }], ports: [{ port: 80 }] }] }))
}

describe('the syncer follows', { timeout: 120_000 }, () => {
  beforeEach(async () => {
    clusters = await Promise.all([openCluster(), openCluster()])
  })
  afterEach(async () => {
    await running?.stop()
    running = undefined
    await Promise.all(clusters.map(cluster => cluster.close()))
  })

  test('its own Service: a later or recreated one becomes the owner of synced objects, because a deleted owner would delete them', async () => {
    await make('web')
    await start()
    const bare = await until('the object', () => onHost('web'))
    assert.equal(bare.metadata.ownerReferences, undefined)
    for (let round = 0; round < 2; round++) {
      const { metadata } = await h().service('vc', undefined, 'team')
      await until('the owner', async () => {
        const owners = ownersOf(await onHost('web'))
        return owners?.length === 1 && owners[0] === metadata.uid
      })
      await h().remove(own, Service)
    }
  })

  test('the addresses of the API server: a new address is rejected from then on', async () => {
    await start()
    const kubernetes = endpoints('kubernetes', {
      subsets: [{ addresses: [{ ip: '10.7.7.7' }], ports: [{ port: 6443 }] }],
    })
    // Real servers have one of their own.
    if (await h().get({ namespace: 'default', name: 'kubernetes' }))
      await h().patch({ namespace: 'default', name: 'kubernetes' }, { subsets: kubernetes.subsets as never })
    else await h().create(kubernetes)
    await make('first', '10.7.7.7')
    const condition = await until('the condition', () => told('first'))
    assert.match(condition, /AddressRefused.*the address of the host API server \(10\.7\.7\.7\)/)
  })

  test('the addresses of the API server: an address that cannot be resolved or read now stays rejected', async () => {
    let looks = 0
    let forbidden = 0
    let isAway = false
    const { resources } = side(1)
    const { metadata } = await h().service('vc', undefined, 'team')
    const host: Resources = {
      ...resources,
      get: async (kind, ref, options) => {
        const isLearned = kind === Service || (kind === Endpoints && ref.name === 'kubernetes')
        if (!isAway || !isLearned) return resources.get(kind, ref, options)
        forbidden++
        throw new ApiError(403, 'Forbidden', 'not now')
      },
    }
    const lookup = async () => {
      if (!isAway) return ['10.8.8.8']
      looks++
      throw new Error('no answer')
    }
    await start({ host, hostServer: 'https://api.example.org:6443', lookup })
    await make('first', '10.8.8.8')
    await until('the condition', () => told('first'))
    isAway = true
    await until('some failures', async () => looks > 2 && forbidden > 6)
    await make('second', '10.8.8.8')
    await make('third')
    assert.deepEqual(ownersOf(await until('the third', () => onHost('third'))), [metadata.uid])
    assert.match(await until('the condition', () => told('second')), /the address of the host API server/)
    assert.equal(await onHost('first'), undefined)
    assert.equal(await onHost('second'), undefined)
  })

  test('the addresses of the API server: until the name is resolved for the first time, nothing is synced', async () => {
    await make('first', '10.8.8.8')
    await make('second')
    const failed: unknown[] = []
    let looks = 0
    const lookup = async () => {
      if (++looks < 4) throw new Error('no answer')
      return ['10.8.8.8']
    }
    await start({ hostServer: 'https://api.example.org:6443', lookup, failed: error => failed.push(error) })
    assert.equal(looks, 4)
    assert.match(String(failed), /cannot resolve api\.example\.org, the host's API server: no answer/)
    await until('the second', () => onHost('second'))
    assert.match(
      await until('the condition', () => told('first')),
      /the address of the host API server \(10\.8\.8\.8\)/,
    )
    assert.equal(await onHost('first'), undefined)
  })
})

describe('host discovery', () => {
  const nothing = { get: () => Promise.reject(new ApiError(404, 'NotFound', 'no')) } as unknown as Resources
  const learner = (lookup: () => Promise<readonly string[]>) =>
    openHostDiscovery({ hostServer: 'https://api.example.org', lookup, ...own })

  test('does not depend on the order or number of addresses of a name; previous addresses stay', async () => {
    const answers = [['10.0.0.2', '10.0.0.1', '10.0.0.2'], ['10.0.0.1'], ['10.0.0.1', '10.0.0.2']]
    const discoverHost = learner(async () => answers.shift() ?? [])
    for (let round = 0; round < 4; round++)
      assert.deepEqual((await discoverHost(nothing)).addresses, ['10.0.0.1', '10.0.0.2'])
  })

  test('is bounded: the oldest unseen addresses are dropped, and no current one', async () => {
    const names = (round: number) => Array.from({ length: 100 }, (_, index) => `10.0.${round}.${index}`)
    let round = 0
    const discoverHost = learner(async () => ['10.9.9.9', ...names(round++)])
    for (let times = 0; times < 3; times++) await discoverHost(nothing)
    const { addresses } = await discoverHost(nothing)
    assert.equal(addresses.length, 256)
    for (const one of ['10.9.9.9', ...names(3), ...names(2)]) assert.ok(addresses.includes(one), one)
    const many = Array.from({ length: 300 }, (_, index) => `10.1.${index >> 8}.${index & 255}`)
    assert.equal((await learner(async () => many)(nothing)).addresses.length, 300)
  })
})
