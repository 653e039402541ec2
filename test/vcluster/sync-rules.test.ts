// The syncer between two API servers over HTTP: gate, translation, host edits and deletions, troubles, one rule a test.

import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { ApiError, expired, futureRevision, invalid, invalidValue } from '../../src/api/errors.ts'
import type { Resource } from '../../src/api/object.ts'
import type { Resources } from '../../src/api/resources.ts'
import { addressGuard } from '../../src/vcluster/config/address-policy.ts'
import type { EndpointSync } from '../../src/vcluster/sync/endpoint-sync.ts'
import { type SyncOptions, startEndpointSync } from '../../src/vcluster/sync/endpoints-controller.ts'
import { endpointsKind } from '../../src/vcluster/sync/endpoints-kind.ts'
import { Endpoints, Event, Service } from '../../src/vcluster/sync/kinds.ts'
import { hostName } from '../../src/vcluster/sync/names.ts'
import { type Cluster, endpoints, openCluster, people, service, until } from '../support/cluster.ts'

const vcluster = { name: 'vc', namespace: 'team' }
const mark = 'vcluster.platform.sh'

let [virtualCluster, hostCluster]: Cluster[] = []
let [v, h]: ReturnType<typeof people>[] = []
let running: EndpointSync | undefined
let failures: unknown[] = []
let troubles: string[] = []

type People = ReturnType<typeof people>
const virtualSide = () => v as People
const hostSide = () => h as People

function start(over: Partial<SyncOptions> = {}): EndpointSync {
  running = startEndpointSync({
    virtual: (virtualCluster as Cluster).resources,
    host: (hostCluster as Cluster).resources,
    hostNamespaces: ['team'],
    vcluster,
    synced: endpointsKind,
    hostDeletePolicy: 'Recreate',
    owner: undefined,
    denyReason: addressGuard({ allowed: [], denied: [], apiServer: [] }),
    now: Date.now,
    reportToTenant: true,
    instance: 'test',
    random: () => 0.5,
    ticks: () => performance.now(),
    observer: {
      wrote: () => {},
      lag: () => {},
      failed: (_, error) => void failures.push(error),
      syncFailure: (_, { reason }) => void troubles.push(reason),
    },
    ...over,
  })
  return running
}

const at = (name: string) => ({ namespace: 'default', name })
const hostAt = (name: string, namespace = 'default') => ({ namespace: 'team', name: hostName(name, namespace, 'vc') })
const onHost = (name: string) => hostSide().get(hostAt(name))
const synced = (name: string, ip?: string) =>
  until(`${name} on the host`, async () => {
    const object = await onHost(name)
    return object && (!ip || object.subsets?.[0]?.addresses?.[0]?.ip === ip) ? object : undefined
  })
const gone = (name: string) => until(`${name} gone`, async () => (await onHost(name)) === undefined)
const annotation = (object: Resource | undefined, key: string) => object?.metadata.annotations?.[key]
const label = (object: Resource | undefined, key: string) => object?.metadata.labels?.[key]
const ips = (...list: string[]) => [{ addresses: list.map(ip => ({ ip })), ports: [{ port: 80 }] }]

async function make(name: string, over: object = {}): Promise<void> {
  await virtualSide().service(name)
  await virtualSide().create(endpoints(name, over as { [key: string]: unknown }))
}

describe('the syncer', { timeout: 120_000 }, () => {
  beforeEach(async () => {
    ;[virtualCluster, hostCluster] = await Promise.all([openCluster(), openCluster()])
    ;[v, h] = [people(virtualCluster), people(hostCluster)]
    failures = []
    troubles = []
  })
  afterEach(async () => {
    await running?.stop()
    running = undefined
    await Promise.all([virtualCluster?.close(), hostCluster?.close()])
  })

  test('an endpoint of a service without selector gets its host object, with name, sync metadata and translated targets', async () => {
    const targetRef = { kind: 'Pod', name: 'web-0', namespace: 'default', uid: 'u', resourceVersion: '1' }
    const other = { kind: 'Node', name: 'n1', uid: 'u' }
    const subsets = [
      {
        addresses: [
          { ip: '10.0.0.1', hostname: 'a', nodeName: 'n1', targetRef },
          { ip: '10.0.0.2', targetRef: other },
        ],
        notReadyAddresses: [{ ip: '10.0.0.3' }],
        ports: [{ name: 'http', port: 80, protocol: 'TCP', appProtocol: 'h2c' }],
      },
    ]
    const annotations = {
      mine: 'yes',
      'kubectl.kubernetes.io/last-applied-configuration': '{}',
      'control-plane.alpha.kubernetes.io/leader': '{}',
    }
    const labels = { app: 'web', [`${mark}/own`]: 'kept' }
    await make('web', { subsets, metadata: { labels, annotations, finalizers: ['example.org/f'] } })
    start({ owner: { apiVersion: 'v1', kind: 'Service', name: 'vc', uid: 'owner-uid' } })
    const object = await synced('web')
    const virtual = await virtualSide().get(at('web'))
    const { labels: hostLabels = {}, annotations: hostAnnotations = {} } = object.metadata
    assert.equal(object.metadata.name, 'web-x-default-x-vc')
    assert.equal(object.metadata.finalizers, undefined)
    assert.deepEqual(
      object.metadata.ownerReferences?.map(({ uid }) => uid),
      ['owner-uid'],
    )
    assert.equal(hostLabels['app'], 'web')
    assert.equal(hostLabels[`${mark}/managed-by`], 'vc')
    assert.equal(hostLabels[`${mark}/namespace`], 'default')
    assert.equal(Object.entries(hostLabels).filter(([, value]) => value === 'kept').length, 1, 'hashed, not lost')
    assert.equal(hostLabels[`${mark}/own`], undefined)
    const { [`${mark}/managed-annotations`]: base, ...rest } = hostAnnotations
    assert.ok(base)
    assert.deepEqual(rest, {
      mine: 'yes',
      [`${mark}/vcluster-namespace`]: 'team',
      [`${mark}/object-name`]: 'web',
      [`${mark}/object-namespace`]: 'default',
      [`${mark}/object-uid`]: virtual?.metadata.uid,
      [`${mark}/object-kind`]: 'Endpoints',
      [`${mark}/object-host-name`]: 'web-x-default-x-vc',
      [`${mark}/object-host-namespace`]: 'team',
    })
    const [subset] = object.subsets ?? []
    assert.deepEqual(subset?.addresses?.[0]?.targetRef, {
      kind: 'Pod',
      name: 'web-0-x-default-x-vc',
      namespace: 'team',
    })
    assert.deepEqual(subset?.addresses?.[1]?.targetRef, other)
    assert.deepEqual(subset?.ports, subsets[0]?.ports)
    assert.equal(subset?.notReadyAddresses?.[0]?.ip, '10.0.0.3')
  })

  test('a change is synced, and nothing is written without a change', async () => {
    await make('web')
    const writes: string[] = []
    const observer = {
      wrote: (side: string, verb: string) => void writes.push(`${side} ${verb}`),
      lag: () => {},
      failed: () => {},
      syncFailure: () => {},
    }
    const sync = start({ observer })
    const first = await synced('web')
    await virtualSide().patch(at('web'), { subsets: ips('10.0.0.9') })
    await synced('web', '10.0.0.9')
    // The host may show a write before its answer has come.
    await until('the answers', async () => writes.length >= 2)
    assert.deepEqual(writes, ['host create', 'host update'])
    await sync.stop()
    start({ observer })
    await running?.ready
    await running?.settled()
    assert.deepEqual(writes, ['host create', 'host update'], 'a restart writes nothing')
    assert.notEqual(first.metadata.resourceVersion, (await onHost('web'))?.metadata.resourceVersion)
  })

  test('subsets that an API server regrouped do not count as a difference', async () => {
    const port = { port: 80, protocol: 'TCP' }
    await make('web', { subsets: [{ addresses: [{ ip: '10.0.0.2' }, { ip: '10.0.0.1' }], ports: [{ port: 80 }] }] })
    const sync = start()
    await synced('web')
    await sync.stop()
    const regrouped = [
      { addresses: [{ ip: '10.0.0.1' }], ports: [port] },
      { addresses: [{ ip: '10.0.0.2' }], ports: [port] },
    ]
    const { metadata } = await hostSide().patch(hostAt('web'), { subsets: regrouped })
    start()
    await running?.ready
    await running?.settled()
    assert.equal((await onHost('web'))?.metadata.resourceVersion, metadata.resourceVersion)
  })

  test('default/kubernetes is never synced', async () => {
    await make('kubernetes').catch(error => assert.equal((error as ApiError).code, 409)) // real servers have it
    await make('web')
    start()
    await synced('web')
    assert.equal(await onHost('kubernetes'), undefined)
  })

  test('endpoints are synced when their service exists, and removed without it', async () => {
    await virtualSide().create(endpoints('web'))
    const sync = start()
    await sync.ready
    await sync.settled()
    assert.equal(await onHost('web'), undefined)
    assert.equal(sync.states().get('waiting'), 1)
    await virtualSide().service('web')
    await synced('web')
    await virtualSide().remove(at('web'), Service)
    await gone('web')
  })

  test('a selector removes ours and keeps the one of the host; without selector ours returns once that one is deleted', async () => {
    await make('web')
    start()
    await synced('web')
    await virtualSide().patch(at('web'), { spec: { selector: { app: 'web' } } }, Service)
    await gone('web')
    // The host's own controller now makes one of that name, with the labels of the service.
    const { namespace, name } = hostAt('web')
    const labels = { [`${mark}/managed-by`]: 'vc', 'endpoints.kubernetes.io/managed-by': 'endpoint-controller' }
    await hostSide().create(endpoints(name, { metadata: { labels }, subsets: ips('10.9.9.9') }, namespace))
    await virtualSide().patch(at('web'), { subsets: ips('10.0.0.2') })
    await running?.settled()
    assert.equal((await onHost('web'))?.subsets?.[0]?.addresses?.[0]?.ip, '10.9.9.9')
    await virtualSide().patch(at('web'), { spec: { selector: null } }, Service)
    await until('the syncFailure', async () => troubles.includes('HostObjectForeign'))
    assert.equal((await onHost('web'))?.subsets?.[0]?.addresses?.[0]?.ip, '10.9.9.9')
    // Its controller removes it with the Service.
    await hostSide().remove(hostAt('web'))
    const back = await synced('web', '10.0.0.2')
    assert.equal(annotation(back, `${mark}/object-name`), 'web')
  })

  test('a deletion is synced to the host, also one while the syncer was stopped', async () => {
    await make('web')
    await make('api')
    const sync = start()
    await synced('web')
    await synced('api')
    await virtualSide().remove(at('web'))
    await gone('web')
    await sync.stop()
    await virtualSide().remove(at('api'))
    start()
    await gone('api')
  })

  test('a terminating object is deleted on the host before its finalizers are removed', async () => {
    await make('web', { metadata: { finalizers: ['example.org/f'] } })
    start()
    await synced('web')
    await virtualSide().remove(at('web'))
    await gone('web')
    assert.ok(await virtualSide().get(at('web')))
  })

  test('an object deleted on the host is created again', async () => {
    await make('web')
    start()
    const { metadata } = await synced('web')
    await hostSide().remove(hostAt('web'))
    await until(
      'another one',
      async () => (await onHost('web'))?.metadata.uid !== metadata.uid && (await onHost('web')),
    )
  })

  test('with Propagate a deletion on the host deletes the virtual object, also after a restart, and never a recreated one', async () => {
    await make('web')
    await make('api')
    const over = { hostDeletePolicy: 'Propagate' as const }
    const sync = start(over)
    const marked = (name: string) =>
      until('the mark', async () => {
        const object = await virtualSide().get(at(name))
        return annotation(object, `${mark}/host-uid`) ? object : undefined
      })
    const copy = await marked('web')
    await marked('api')
    await hostSide().remove(hostAt('web'))
    await until('web gone', async () => (await virtualSide().get(at('web'))) === undefined)
    await sync.stop()
    await hostSide().remove(hostAt('api'))
    start(over)
    await until('api gone', async () => (await virtualSide().get(at('api'))) === undefined)
    const { annotations = {} } = copy.metadata
    await virtualSide().create(endpoints('web', { metadata: { annotations } }))
    await synced('web')
  })

  test('with Propagate an object with a new target namespace does not count as deleted: it is created there, and the virtual one stays', async () => {
    await make('web')
    const to = (namespace: string) => ({
      ...{ hostDeletePolicy: 'Propagate' as const, hostNamespaces: [namespace] },
      vcluster: { ...vcluster, mapped: () => namespace },
    })
    const marked = (before?: string) =>
      until('the mark', async () => {
        const found = annotation(await virtualSide().get(at('web')), `${mark}/host-uid`)
        return found !== before && found
      })
    const sync = start(to('team-default'))
    const first = await marked()
    const { metadata } = (await virtualSide().get(at('web'))) ?? endpoints('none')
    await sync.stop()
    start(to('other'))
    await until('the object', () => hostSide().get({ namespace: 'other', name: 'web' }))
    await marked(first)
    assert.equal((await virtualSide().get(at('web')))?.metadata.uid, metadata.uid)
    assert.doesNotMatch(first, /team-default/, 'the condition for the tenant has no name of the host')
    await hostSide().remove({ namespace: 'other', name: 'web' })
    await until('web gone', async () => (await virtualSide().get(at('web'))) === undefined)
  })

  test('subsets edited on the host are reverted', async () => {
    await make('web')
    start()
    await synced('web')
    await hostSide().patch(hostAt('web'), { subsets: ips('10.6.6.6') })
    await synced('web', '10.0.0.1')
  })

  test('labels and annotations merge key by key; if both sides changed, the virtual side wins', async () => {
    const metadata = { labels: { a: '1', b: '1', c: '1', d: '1' }, annotations: { x: '1' } }
    await make('web', { metadata })
    const sync = start()
    await synced('web')
    await sync.stop() // edits made while it is down are still seen for what they were
    await hostSide().patch(hostAt('web'), {
      metadata: { labels: { a: 'host', b: 'host', c: null, e: 'host' }, annotations: { x: null } },
    })
    await virtualSide().patch(at('web'), { metadata: { labels: { a: 'virtual', d: null, f: 'virtual' } } })
    start()
    const expected = { a: 'virtual', b: 'host', e: 'host', f: 'virtual' }
    const own = (labels: { readonly [key: string]: string } = {}) =>
      Object.fromEntries(Object.entries(labels).filter(([key]) => !key.startsWith(mark)))
    const isMerged = (object: Resource | undefined) =>
      JSON.stringify(Object.entries(own(object?.metadata.labels)).toSorted()) ===
      JSON.stringify(Object.entries(expected))
    await until(
      'both sides merged',
      async () => isMerged(await onHost('web')) && isMerged(await virtualSide().get(at('web'))),
    )
    assert.equal(annotation(await onHost('web'), 'x'), undefined)
    assert.equal(annotation(await virtualSide().get(at('web')), 'x'), undefined)
  })

  test('changed sync metadata that does not define ownership is restored', async () => {
    await make('web')
    start()
    await synced('web')
    await hostSide().patch(hostAt('web'), { metadata: { labels: { [`${mark}/namespace`]: null } } })
    await until('the label', async () => label(await onHost('web'), `${mark}/namespace`) === 'default')
    await hostSide().patch(hostAt('web'), { metadata: { annotations: { [`${mark}/managed-annotations`]: null } } })
    await until('the base', async () => annotation(await onHost('web'), `${mark}/managed-annotations`))
  })

  test('another object of the same name is recognized by its uid, and inherits no edit', async () => {
    await make('web', { metadata: { labels: { a: '1' } } })
    const sync = start()
    const { metadata } = await synced('web')
    await sync.stop()
    await hostSide().patch(hostAt('web'), { metadata: { labels: { a: 'host' } } })
    await virtualSide().remove(at('web'))
    await virtualSide().create(endpoints('web', { metadata: { labels: { a: '1' } } }))
    start()
    const uid = `${mark}/object-uid`
    const next = await until('the new uid', async () => {
      const object = await onHost('web')
      return annotation(object, uid) !== metadata.annotations?.[uid] && object
    })
    assert.equal(label(next, 'a'), '1')
    assert.equal(label(await virtualSide().get(at('web')), 'a'), '1')
  })

  test('the syncer waits for a terminating foreign object, and creates ours when it is deleted', async () => {
    await make('web')
    const { namespace, name } = hostAt('web')
    await hostSide().create(endpoints(name, { metadata: { finalizers: ['example.org/f'] } }, namespace))
    await hostSide().remove(hostAt('web'))
    const sync = start()
    await sync.ready
    await sync.settled()
    assert.equal(sync.states().get('waiting'), 1)
    await hostSide().patch(hostAt('web'), { metadata: { finalizers: null } })
    await until('ours', async () => annotation(await onHost('web'), `${mark}/object-name`) === 'web')
  })

  test('two objects with the same host name: the second gets a condition, and is created when the first is deleted', async () => {
    await virtualSide().service('a-x-b', undefined, 'c')
    await virtualSide().service('a', undefined, 'b-x-c')
    await virtualSide().create(endpoints('a-x-b', {}, 'c'))
    const sync = start()
    const name = hostName('a', 'b-x-c', 'vc')
    assert.equal(name, hostName('a-x-b', 'c', 'vc'))
    await until('the first', () => hostSide().get({ namespace: 'team', name }))
    await virtualSide().create(endpoints('a', { subsets: ips('10.0.0.7') }, 'b-x-c'))
    await until('the syncFailure', async () => troubles.includes('HostObjectForeign'))
    assert.equal(sync.states().get('failed'), 1)
    await virtualSide().remove({ namespace: 'c', name: 'a-x-b' })
    await until('the second', async () => {
      const object = await hostSide().get({ namespace: 'team', name })
      return annotation(object, `${mark}/object-namespace`) === 'b-x-c'
    })
  })

  test('an address of the host itself is rejected, reported as condition and Event, and other objects are synced', async () => {
    await make('bad', { subsets: ips('10.0.0.1', '239.0.0.1') }) // loopback and link-local no API server takes itself
    await make('web')
    start()
    await synced('web')
    const told = await until('the condition', async () =>
      annotation(await virtualSide().get(at('bad')), `${mark}/conditions`),
    )
    assert.match(told, /AddressRefused.*subsets\[0\]\.addresses\[1\]\.ip is a multicast or broadcast address/)
    assert.equal(await onHost('bad'), undefined)
    const event = await until('the Event', async () => (await virtualSide().list(Event))[0])
    assert.equal((event as unknown as { reason: string }).reason, 'SyncError')
    await virtualSide().patch(at('bad'), { subsets: ips('10.0.0.1') })
    await synced('bad')
  })

  test('if an address is rejected later, nothing is written, and the synced object stays', async () => {
    await make('web', { metadata: { labels: { a: '1' } } })
    start()
    const before = await synced('web')
    await virtualSide().patch(at('web'), { subsets: ips('10.0.0.2', '239.0.0.1'), metadata: { labels: { a: '2' } } })
    await until('the condition', async () => annotation(await virtualSide().get(at('web')), `${mark}/conditions`))
    await running?.settled()
    assert.deepEqual(await onHost('web'), before)
  })

  test('a rejection by the host is reported with the virtual name, retried, and does not delay other objects', async () => {
    await make('bad')
    await make('web')
    const { resources } = hostCluster as Cluster
    let refused = 0
    const picky: Resources = {
      ...resources,
      create: async (kind, namespace, object, options) => {
        const { name } = (object as unknown as Resource).metadata
        if (name?.startsWith('bad') && refused++ < 3)
          throw invalid(Endpoints, name, [invalidValue('metadata.name', name, 'no')])
        return resources.create(kind, namespace, object, options)
      },
    }
    start({ host: picky, random: () => 0 })
    await synced('web')
    const told = await until('the condition', async () =>
      annotation(await virtualSide().get(at('bad')), `${mark}/conditions`),
    )
    assert.match(told, /HostRefused.*metadata\.name: Invalid value: \\+"bad\\+": no/)
    await synced('bad')
    await until(
      'the condition gone',
      async () => annotation(await virtualSide().get(at('bad')), `${mark}/conditions`) === undefined,
    )
    assert.equal(refused, 4)
  })

  for (const code of [409, 429, 500, 503])
    test(`a ${code} is retried, and not reported to the tenant`, async () => {
      await make('web')
      const { resources } = hostCluster as Cluster
      let refused = 0
      const failing: Resources = {
        ...resources,
        create: async (...args) => {
          if (refused++ < 2) throw new ApiError(code, '', 'not now')
          return resources.create(...args)
        },
      }
      start({ host: failing, random: () => 0 })
      await synced('web')
      assert.deepEqual(troubles, [])
      assert.equal(annotation(await virtualSide().get(at('web')), `${mark}/conditions`), undefined)
    })

  for (const [what, error] of [
    ['a watch that is too old', expired('too old')],
    ['a server that was set back', futureRevision('9', '1')],
  ] as const)
    test(`after ${what} the syncer lists again, and sees changes from meanwhile`, async () => {
      await make('web')
      await make('api')
      const { resources } = virtualCluster as Cluster
      let isLost = false
      const forgetful: Resources = {
        ...resources,
        watch: async (kind, options) => {
          if (kind !== Endpoints || isLost) return resources.watch(kind, options)
          await synced('web')
          await virtualSide().remove(at('web'))
          await virtualSide().patch(at('api'), { subsets: ips('10.0.0.4') })
          isLost = true
          throw error
        },
      }
      start({ virtual: forgetful })
      await gone('web')
      await synced('api', '10.0.0.4')
    })

  test('a wrong clock changes only the times in conditions', async () => {
    await make('web')
    await make('bad', { subsets: ips('239.0.0.1') })
    start({ now: () => 0 })
    await synced('web')
    await until('the condition', async () => annotation(await virtualSide().get(at('bad')), `${mark}/conditions`))
    await running?.stop()
    start({ now: () => Date.now() + 10 * 365 * 86_400_000 })
    await virtualSide().patch(at('bad'), { subsets: ips('10.0.0.1') })
    await synced('bad')
  })

  test('a clock that is set back causes no negative lag', async () => {
    let time = Date.now()
    const lags: number[] = []
    const observer = {
      wrote: () => {},
      lag: (seconds: number) => void lags.push(seconds),
      failed: () => {},
      syncFailure: () => {},
    }
    const sync = start({ now: () => (time -= 3_600_000), observer })
    await sync.ready
    await make('web')
    await synced('web')
    await until('a lag', async () => lags.length > 0)
    for (const lag of lags) assert.ok(lag >= 0 && lag < 3600, String(lag))
  })

  test('a change between reading and writing is a conflict that is resolved', async () => {
    await make('web')
    const { resources } = hostCluster as Cluster
    let once = true
    const raced: Resources = {
      ...resources,
      update: async (kind, ref, object, options) => {
        if (once) await resources.patch(kind, ref, { type: 'merge', body: { metadata: { labels: { raced: 'yes' } } } })
        once = false
        return resources.update(kind, ref, object, options)
      },
    }
    start({ host: raced, random: () => 0 })
    await synced('web')
    await virtualSide().patch(at('web'), { subsets: ips('10.0.0.5') })
    await synced('web', '10.0.0.5')
    await until('the label on both sides', async () => label(await virtualSide().get(at('web')), 'raced') === 'yes')
    assert.equal(label(await onHost('web'), 'raced'), 'yes')
  })

  test('in multi-namespace mode names are kept and namespaces mapped; an unmapped one is reported', async () => {
    await make('web')
    await virtualSide().service('web', undefined, 'other')
    await virtualSide().create(endpoints('web', {}, 'other'))
    const mapped = (namespace: string) => (namespace === 'default' ? 'team-default' : undefined)
    start({ vcluster: { ...vcluster, mapped }, hostNamespaces: ['team-default'] })
    await until('the object', () => hostSide().get({ namespace: 'team-default', name: 'web' }))
    await until('the syncFailure', async () => troubles.includes('NamespaceNotMapped'))
    const others = (await hostSide().list(Endpoints)).filter(({ metadata }) => metadata.name !== 'kubernetes')
    assert.equal(others.length, 1)
  })

  test('an unrelated service of the virtual side changes nothing', async () => {
    await make('web')
    const sync = start()
    const { metadata } = await synced('web')
    await virtualSide().patch(at('web'), { metadata: { labels: { x: 'y' } } }, Service)
    await virtualSide().create(service('lonely'))
    await sync.settled()
    assert.equal((await onHost('web'))?.metadata.resourceVersion, metadata.resourceVersion)
    assert.deepEqual(failures, [])
  })
})
