// EndpointSlices that no controller manages are synced like Endpoints, for the host's Service of the tenant.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { forbidden } from '../../src/api/errors.ts'
import type { Json, JsonObject, Ref, Resource } from '../../src/api/object.ts'
import type { Resources } from '../../src/api/resources.ts'
import { EndpointSlice, Endpoints, Event, Service } from '../../src/vcluster/sync/kinds.ts'
import { hostName } from '../../src/vcluster/sync/names.ts'
import { endpoints, until } from '../support/cluster.ts'
import { twoClusters } from './two-clusters.ts'

const serviceName = 'kubernetes.io/service-name'
const managedBy = 'endpointslice.kubernetes.io/managed-by'
const ref = { namespace: 'default', name: 'web-1' }
const hostRef = { namespace: 'team', name: hostName('web-1', 'default', 'vc') }
const on = { endpointSlices: { enabled: true } }

const slice = (over: object = {}, metadata: object = {}): JsonObject => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { ...ref, labels: { [serviceName]: 'web', app: 'web' }, ...metadata },
  addressType: 'IPv4',
  endpoints: [{ addresses: ['10.0.0.7'], conditions: { ready: true } }],
  ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
  ...over,
})

type Slice = Resource & { readonly addressType: string; readonly endpoints: readonly JsonObject[] }

describe('EndpointSlices', () => {
  const { v, side, start, stop, sync, logged } = twoClusters()
  const create = (object: JsonObject) => side(0).resources.create(EndpointSlice, 'default', object as Json)
  const read = async (which: 0 | 1, at = which === 0 ? ref : hostRef): Promise<Slice | undefined> =>
    (
      await side(which)
        .resources.get(EndpointSlice, at)
        .catch(() => undefined)
    )?.object as Slice | undefined
  const onHost = (what = 'the slice is on the host') => until(what, () => read(1))
  const condition = async () =>
    JSON.parse((await read(0))?.metadata.annotations?.['vcluster.platform.sh/conditions'] ?? '[]')[0]
  const patch = (which: 0 | 1, body: JsonObject) =>
    side(which).resources.patch(EndpointSlice, which === 0 ? ref : hostRef, { type: 'merge', body })

  test('are not synced by default', async () => {
    await v().service('web')
    await create(slice())
    await v().create(endpoints('web'))
    await start([])
    await until('the Endpoints is synced', async () => sync().states().get('synced') === 1)
    assert.equal(await read(1), undefined)
  })

  test('get the name of the host Service and of the host Pod', async () => {
    await v().service('web')
    const targetRef = { kind: 'Pod', namespace: 'default', name: 'web-0', uid: 'u' }
    await create(slice({ endpoints: [{ addresses: ['10.0.0.7'], targetRef, zone: 'a' }] }))
    await start([], {}, on)
    const { metadata, endpoints: list, addressType } = await onHost()
    assert.equal(metadata.labels?.[serviceName], hostName('web', 'default', 'vc'))
    assert.equal(metadata.labels?.[managedBy], 'vcluster.platform.sh')
    assert.equal(metadata.labels?.['app'], 'web')
    assert.equal(metadata.annotations?.['vcluster.platform.sh/object-kind'], 'EndpointSlice')
    assert.equal(addressType, 'IPv4')
    const target = { kind: 'Pod', namespace: 'team', name: hostName('web-0', 'default', 'vc') }
    assert.deepEqual(list, [{ addresses: ['10.0.0.7'], targetRef: target, zone: 'a' }])
  })

  test('follow changes and deletions; edits of the host are reverted', async () => {
    await v().service('web')
    await create(slice())
    await start([], {}, on)
    await onHost()
    await patch(0, { endpoints: [{ addresses: ['10.0.0.8'] }] })
    const has = (address: string) => async () => JSON.stringify((await read(1))?.endpoints).includes(address)
    await until('the change is on the host', has('10.0.0.8'))
    await patch(1, { endpoints: [{ addresses: ['10.9.9.9'] }], metadata: { labels: { [serviceName]: 'other' } } })
    await until('the edit is reverted', has('10.0.0.8'))
    assert.equal((await read(1))?.metadata.labels?.[serviceName], hostName('web', 'default', 'vc'))
    await side(0).resources.delete(EndpointSlice, ref)
    await until('it is gone on the host', async () => (await read(1)) === undefined)
  })

  test('wait for a Service without a selector', async () => {
    await create(slice())
    await start([], {}, on)
    await until('it waits', async () => sync().states().get('waiting') === 1)
    assert.equal(await read(1), undefined)
    await v().service('web')
    await onHost()
  })

  for (const [what, metadata] of Object.entries({
    'the slice controller': { labels: { [serviceName]: 'web', [managedBy]: 'endpointslice-controller.k8s.io' } },
    'the mirroring controller': {
      labels: { [serviceName]: 'web', [managedBy]: 'endpointslicemirroring-controller.k8s.io' },
    },
    'an owner that is a controller': {
      ownerReferences: [{ apiVersion: 'v1', kind: 'Service', name: 'web', uid: 'u', controller: true }],
    },
  }))
    test(`of ${what} are not synced, so that mirrored Endpoints are not doubled`, async () => {
      await v().service('web')
      await v().create(endpoints('web'))
      await create(slice({}, metadata))
      await start([], {}, on)
      await until('it is skipped', async () => sync().states().get('skipped') === 1)
      await until('the Endpoints is synced', async () => sync().states().get('synced') === 1)
      assert.equal(await read(1), undefined)
      assert.ok((await side(1).resources.list(Endpoints, { namespace: 'team' })).items.length === 1)
    })

  test('with names instead of addresses are rejected, with condition and Event', async () => {
    await v().service('web')
    await create(slice({ addressType: 'FQDN', endpoints: [{ addresses: ['metadata.example.com'] }] }))
    await start([], {}, on)
    const { reason, message } = await until('the condition is set', condition)
    assert.equal(reason, 'AddressRefused')
    assert.match(message, /addressType FQDN is not synced/)
    assert.equal(await read(1), undefined)
    const [event] = (await v().list(Event)) as unknown as { involvedObject: { kind: string }; message: string }[]
    assert.equal(event?.involvedObject.kind, 'EndpointSlice')
  })

  test('with an address of the host or of cloud metadata are rejected', async () => {
    await v().service('web')
    await create(slice({ endpoints: [{ addresses: ['10.0.0.7'] }, { addresses: ['169.254.169.254'] }] }))
    await start([], {}, on)
    const { reason, message } = await until('the condition is set', condition)
    assert.equal(reason, 'AddressRefused')
    assert.match(message, /^endpoints\[1\]\.addresses\[0\] is a cloud metadata address/)
    assert.equal(await read(1), undefined)
  })

  test('are changed by their own patches, which cannot change the Service', async () => {
    await v().service('web')
    await create(slice())
    const patches = [
      { path: 'endpoints[*].addresses[*]', expression: "value.replace('10.0.', '10.1.')" },
      { path: `metadata.labels["${serviceName}"]`, expression: "'victim'" },
      { path: 'metadata.annotations["note"]', expression: "'host'" },
    ]
    await start([], {}, { endpointSlices: { enabled: true, patches } })
    const { metadata, endpoints: list } = await onHost()
    assert.deepEqual(list, [{ addresses: ['10.1.0.7'], conditions: { ready: true } }])
    assert.equal(metadata.labels?.[serviceName], hostName('web', 'default', 'vc'))
    assert.deepEqual(logged(), [])
  })

  test('a patch that creates a denied address or type is rejected', async () => {
    await v().service('web')
    await create(slice())
    const patches = [{ path: 'addressType', expression: "'FQDN'" }]
    await start([], {}, { endpointSlices: { enabled: true, patches } })
    const { reason } = await until('the condition is set', condition)
    assert.equal(reason, 'AddressRefused')
    assert.equal(await read(1), undefined)
  })

  test('a slice of the host that the syncer did not create stays, with a condition', async () => {
    await v().service('web')
    const foreign = { ...slice(), metadata: { ...hostRef, labels: { [serviceName]: 'other' } } }
    await side(1).resources.create(EndpointSlice, 'team', foreign as Json)
    await create(slice())
    await start([], {}, on)
    const { reason } = await until('the condition is set', condition)
    assert.equal(reason, 'HostObjectForeign')
    assert.equal((await read(1))?.metadata.labels?.[serviceName], 'other')
  })

  const hostService = (at: Ref, annotations: object, selector?: object) =>
    side(1).resources.create(Service, at.namespace, {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { ...at, annotations },
      spec: selector ? { selector } : {},
    } as Json)
  const isRefused = async (why: RegExp) => {
    const { reason, message } = await until('the condition is set', condition)
    assert.equal(reason, 'HostObjectForeign')
    assert.equal(message, "the host's Service for default/web is another one")
    await until('the log has the reason', async () => logged().some(line => why.test(line)))
  }

  test('do not join a Service of the host with a selector, which is not of the tenant', async () => {
    await hostService({ namespace: 'other', name: 'web' }, {}, { app: 'billing' })
    await v().service('web')
    await create(slice())
    await start([], {}, { ...on, namespaces: { enabled: true, mappings: { byName: { default: 'other' } } } })
    await isRefused(/other\/web on the host is not that of default\/web: it has a selector/)
    assert.equal(await read(1, { namespace: 'other', name: 'web-1' }), undefined)
    await side(1).resources.delete(Service, { namespace: 'other', name: 'web' })
    await until('it is synced', () => read(1, { namespace: 'other', name: 'web-1' }))
  })

  test('do not join the Service of another virtual cluster, and leave it if it is created later', async () => {
    const at = { namespace: 'team', name: hostName('web', 'default', 'vc') }
    await hostService(at, { 'vcluster.loft.sh/object-name': 'web', 'vcluster.loft.sh/object-namespace': 'default' })
    await v().service('web')
    await create(slice())
    await start([], {}, on)
    await onHost()
    await side(1).resources.delete(Service, at)
    await hostService(at, { 'vcluster.loft.sh/object-name': 'web', 'vcluster.loft.sh/object-namespace': 'default-x-a' })
    await isRefused(/it has vcluster\.loft\.sh\/object-namespace=default-x-a/)
    await until('it is gone on the host', async () => (await read(1)) === undefined)
  })

  test('are not synced without permission to check the Service of the host', async () => {
    await v().service('web')
    await create(slice())
    const host = side(1).resources
    const get: Resources['get'] = (kind, ref) =>
      kind === Service ? Promise.reject(forbidden(kind, ref.name, 'secret words of the host')) : host.get(kind, ref)
    await start([], { host: { ...host, get } }, on)
    const { reason, message } = await until('the condition is set', condition)
    assert.equal(reason, 'HostForbidden')
    assert.match(message, /no permission to get the host's Service for default\/web/)
    assert.match(logged().join(), /secret words of the host/)
    assert.equal(await read(1), undefined)
  })

  test('a new slice with another address type replaces the one on the host', async () => {
    await v().service('web')
    await create(slice())
    await start([], {}, on)
    const { metadata } = await onHost()
    await stop()
    await side(0).resources.delete(EndpointSlice, ref)
    await create(slice({ addressType: 'IPv6', endpoints: [{ addresses: ['2001:db8::7'] }] }))
    await start([], {}, on)
    await until('it is replaced', async () => (await read(1))?.addressType === 'IPv6')
    assert.notEqual((await read(1))?.metadata.uid, metadata.uid)
  })
})
