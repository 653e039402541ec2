// What the syncer knows of the host besides endpoints, its owner and the API server's addresses, and that it learns of changes.

import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { Resource } from '../../src/api/object.ts'
import { defaultConfig } from '../../src/vcluster/config.ts'
import type { EndpointSync } from '../../src/vcluster/endpoints.ts'
import { Service } from '../../src/vcluster/kinds.ts'
import { hostName } from '../../src/vcluster/names.ts'
import { openSync } from '../../src/vcluster/sync.ts'
import { type Cluster, endpoints, openCluster, people, until } from '../support/cluster.ts'

let clusters: Cluster[] = []
let running: EndpointSync | undefined
const side = (which: 0 | 1) => clusters[which] as Cluster
const [v, h] = [() => people(side(0)), () => people(side(1))]
const onHost = (name: string) => h().get({ namespace: 'team', name: hostName(name, 'default', 'vc') })
const ownersOf = (object: Resource | undefined) => object?.metadata.ownerReferences?.map(({ uid }) => uid)
const own = { namespace: 'team', name: 'vc' }

async function start(): Promise<void> {
  running = await openSync({
    config: defaultConfig(),
    ...own,
    virtual: side(0).resources,
    host: side(1).resources,
    hostServer: 'https://192.0.2.1:6443',
    lookup: async () => [],
    importAllow: [],
    tell: true,
    instance: 'test',
    now: Date.now,
    random: () => 0,
    wait: () => Promise.resolve(),
    learnEvery: 20,
    observer: { wrote: () => {}, lag: () => {}, failed: () => {}, trouble: () => {}, patched: () => {} },
  })
}

async function make(name: string, ip = '10.0.0.1'): Promise<void> {
  await v().service(name)
  await v().create(endpoints(name, { subsets: [{ addresses: [{ ip }], ports: [{ port: 80 }] }] }))
}

describe('the syncer follows', { timeout: 60_000 }, () => {
  beforeEach(async () => {
    clusters = await Promise.all([openCluster(), openCluster()])
  })
  afterEach(async () => {
    await running?.stop()
    running = undefined
    await Promise.all(clusters.map(cluster => cluster.close()))
  })

  test('its own Service: one that is made later, or again, owns what is synced; a dead owner would take it along', async () => {
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

  test('the addresses of the API server: what has become one is refused from then on', async () => {
    await start()
    const kubernetes = endpoints('kubernetes', {
      subsets: [{ addresses: [{ ip: '10.7.7.7' }], ports: [{ port: 6443 }] }],
    })
    // Real servers have one of their own.
    if (await h().get({ namespace: 'default', name: 'kubernetes' }))
      await h().patch({ namespace: 'default', name: 'kubernetes' }, { subsets: kubernetes.subsets as never })
    else await h().create(kubernetes)
    await make('first', '10.7.7.7')
    const told = async (name: string) =>
      (await v().get({ namespace: 'default', name }))?.metadata.annotations?.['vcluster.platform.sh/conditions']
    const condition = await until('the condition', () => told('first'))
    assert.match(condition, /AddressRefused.*the address of the host API server \(10\.7\.7\.7\)/)
  })
})
