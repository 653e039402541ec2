// Reports to the tenant and to the operator: no failure is silent, and none is retried at full speed forever.

import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { ApiError } from '../../src/api/errors.ts'
import type { JsonObject, Resource } from '../../src/api/object.ts'
import type { Resources } from '../../src/api/resources.ts'
import type { EndpointSync } from '../../src/vcluster/sync/endpoint-sync.ts'
import { type SyncOptions, startEndpointSync } from '../../src/vcluster/sync/endpoints-controller.ts'
import { endpointsKind } from '../../src/vcluster/sync/endpoints-kind.ts'
import { type EndpointsObject, Event } from '../../src/vcluster/sync/kinds.ts'
import { hostName } from '../../src/vcluster/sync/names.ts'
import { type Cluster, endpoints, openCluster, people, until } from '../support/cluster.ts'

const mark = 'vcluster.platform.sh'
let clusters: Cluster[] = []
let running: EndpointSync | undefined
let logged: string[] = []
let writes = 0
const side = (which: 0 | 1) => clusters[which] as Cluster
const [v, h] = [() => people(side(0)), () => people(side(1))]
const at = { namespace: 'default', name: 'web' }
const hostAt = { namespace: 'team', name: hostName('web', 'default', 'vc') }
const annotation = (object: Resource | undefined, key: string) => object?.metadata.annotations?.[key]
const conditionOf = async (ref = at) => annotation(await v().get(ref), `${mark}/conditions`)

function start(over: Partial<SyncOptions> = {}): EndpointSync {
  running = startEndpointSync({
    virtual: side(0).resources,
    host: side(1).resources,
    hostNamespaces: ['team'],
    vcluster: { name: 'vc', namespace: 'team' },
    synced: endpointsKind,
    hostDeletePolicy: 'Recreate',
    owner: undefined,
    denyReason: () => undefined,
    now: Date.now,
    reportToTenant: true,
    instance: 'test',
    random: () => 0,
    ticks: () => performance.now(),
    observer: {
      wrote: () => void writes++,
      lag: () => {},
      failed: (_, error) => void logged.push((error as Error).message),
      syncFailure: (_, { reason, message, logged: more = message }) => void logged.push(`${reason}: ${more}`),
    },
    ...over,
  })
  return running
}

async function make(name = 'web', selector?: object, namespace = 'default'): Promise<void> {
  await v().service(name, selector, namespace)
  await v().create(endpoints(name, {}, namespace))
}

/** A host that puts another stamp on whatever is written. */
function stamping(): { readonly host: Resources; readonly stamps: () => number } {
  const { resources } = side(1)
  let stamps = 0
  const stamped = (object: unknown) => {
    const one = object as EndpointsObject
    const annotations = { ...one.metadata.annotations, stamp: String(stamps++) }
    return { ...one, metadata: { ...one.metadata, annotations } } as never
  }
  const host: Resources = {
    ...resources,
    create: (kind, namespace, object, options) => resources.create(kind, namespace, stamped(object), options),
    update: (kind, ref, object, options) => resources.update(kind, ref, stamped(object), options),
  }
  return { host, stamps: () => stamps }
}

describe('the syncer reports', { timeout: 120_000 }, () => {
  beforeEach(async () => {
    clusters = await Promise.all([openCluster(), openCluster()])
    logged = []
    writes = 0
  })
  afterEach(async () => {
    await running?.stop()
    running = undefined
    await Promise.all(clusters.map(cluster => cluster.close()))
  })

  test('that the namespace is missing on the host, if a create fails', async () => {
    await make()
    const { resources } = side(1)
    const host: Resources = {
      ...resources,
      create: () => Promise.reject(new ApiError(404, 'NotFound', 'namespaces "team" not found')),
    }
    const sync = start({ host })
    const told = await until('the condition', conditionOf)
    assert.match(told, /"reason":"HostRefused","message":"its namespace does not exist on the host"/)
    await until('the state', async () => sync.states().get('failed') === 1)
    assert.match(logged.join('\n'), /HostRefused: namespaces "team" not found/)
  })

  test('of an unmapped namespace only if something would have been synced from it', async () => {
    await make('web', undefined, 'other')
    await make('dns', { app: 'dns' }, 'other')
    await v().create(endpoints('lonely', {}, 'other'))
    const sync = start({ vcluster: { name: 'vc', namespace: 'team', mapped: () => undefined }, hostNamespaces: [] })
    const told = await until('the condition', () => conditionOf({ namespace: 'other', name: 'web' }))
    assert.match(told, /NamespaceNotMapped/)
    await sync.settled()
    assert.deepEqual(
      sync.failures().map(({ name }) => name),
      ['other/web'],
    )
    for (const name of ['dns', 'lonely']) assert.equal(await conditionOf({ namespace: 'other', name }), undefined)
    assert.deepEqual(
      [sync.states().get('failed'), sync.states().get('host-owned'), sync.states().get('waiting')],
      [1, 1, 1],
    )
  })

  test('the tenant with its own names only; the operator with those of the host', async () => {
    await make()
    const labels = { 'vcluster.example.org/managed-by': 'a-neighbour' }
    await h().create(endpoints(hostAt.name, { metadata: { labels } }, 'team'))
    start()
    const told = await until('the condition', conditionOf)
    const event = await until('the Event', async () => (await v().list(Event))[0])
    for (const text of [told, (event as unknown as { message: string }).message]) {
      assert.match(text, /HostObjectForeign/)
      assert.match(text, /default\/web/)
      assert.doesNotMatch(text, /team|-x-|a-neighbour/)
    }
    assert.match(logged.join('\n'), /HostObjectForeign: team\/web-x-default-x-vc .*managed-by=a-neighbour/)
  })

  const refusing = (error: ApiError): Resources => ({ ...side(1).resources, create: () => Promise.reject(error) })

  test('the tenant that the syncer lacks permission, without names of the host; the operator all of it', async () => {
    await make()
    const message = `endpoints "${hostAt.name}" is forbidden: User "system:serviceaccount:team:syncer" cannot create resource "endpoints" in the namespace "team"`
    start({ host: refusing(new ApiError(403, 'Forbidden', message)) })
    const told = await until('the condition', conditionOf)
    const event = await until('the Event', async () => (await v().list(Event))[0])
    for (const text of [told, (event as unknown as { message: string }).message]) {
      assert.match(
        text,
        /HostForbidden.*the syncer has no permission to create it: ask the operator of the host; the log of the syncer/,
      )
      assert.doesNotMatch(text, /team|-x-|serviceaccount/)
    }
    assert.ok(logged.includes(`HostForbidden: ${message}`), logged.join('\n'))
  })

  const port = {
    reason: 'FieldValueInvalid',
    field: 'subsets[0].ports[0].port',
    message: 'Invalid value: 0: too small',
  }
  const name = { reason: 'FieldValueInvalid', field: 'metadata.name', message: `Invalid value: "${hostAt.name}": no` }
  const refusals: readonly (readonly [what: string, error: ApiError, told: RegExp])[] = [
    [
      'the fields that the host does not take',
      new ApiError(422, 'Invalid', `Endpoints "${hostAt.name}" is invalid`, { details: { causes: [port, name] } }),
      /"the host rejected it: subsets\[0\]\.ports\[0\]\.port: Invalid value: 0: too small, metadata\.name: Invalid value: \\"web\\": no"/,
    ],
    [
      'nothing of a field whose message names the host',
      new ApiError(422, 'Invalid', 'no', { details: { causes: [port, { ...port, message: 'not in team' }] } }),
      /"the host rejected it: ask the operator of the host; the log of the syncer has the cause"/,
    ],
    [
      'nothing of the words of a webhook',
      new ApiError(400, 'BadRequest', 'admission webhook "guard.team.svc" denied the request: not in team', {
        details: { causes: [port] },
      }),
      /"the host rejected it: ask the operator of the host; the log of the syncer has the cause"/,
    ],
    [
      'nothing of words without a field',
      new ApiError(422, 'Invalid', 'the neighbours of team have no capacity'),
      /"the host rejected it: ask the operator of the host; the log of the syncer has the cause"/,
    ],
    ['that it is too large', new ApiError(413, 'TooLarge', 'limit of team: 1 MiB'), /"it is too large for the host"/],
  ]
  for (const [what, error, expected] of refusals)
    test(`the tenant ${what}`, async () => {
      await make()
      start({ host: refusing(error) })
      const told = await until('the condition', conditionOf)
      assert.match(told, /"reason":"HostRefused"/)
      assert.match(told, expected)
      assert.doesNotMatch(told, /team|-x-|webhook/)
      await until('the log', async () => logged.includes(`HostRefused: ${error.message}`))
    })

  test('that the host rejects a referenced object', async () => {
    await make()
    const referenced = {
      ...{ apiVersion: 'v1', kind: 'Secret', path: 'metadata.annotations.key', namespace: 'default', name: 'key' },
      ...{ hostNamespace: 'team', hostName: 'v123' },
    }
    const pass = async ({ object }: { readonly object: JsonObject }) => ({
      object,
      trace: [],
      referencedObjects: [referenced],
    })
    let isRefused = true
    const syncReference = async () => {
      if (isRefused) throw new ApiError(403, 'Forbidden', 'secrets "v123" is forbidden in the namespace "team"')
      return undefined
    }
    start({ patcher: { toHost: pass, toVirtual: pass }, syncReference })
    const told = await until('the condition', conditionOf)
    assert.match(
      told,
      /"ReferenceFailed","message":"Secret default\/key: the syncer has no permission to read or write it: ask the operator/,
    )
    assert.doesNotMatch(told, /team|v123/)
    assert.match(logged.join('\n'), /ReferenceFailed: secrets "v123" is forbidden in the namespace "team"/)
    assert.ok(await h().get(hostAt), 'the endpoint itself is synced')
    isRefused = false
    await until('its end', async () => (await conditionOf()) === undefined)
  })

  test('a host that changes every write is followed, ever more slowly', async () => {
    await make()
    const { host, stamps } = stamping()
    let time = 0
    const sync = start({ host, ticks: () => time })
    // Three passes follow the first one without a delay.
    for (const [writes, delay] of [
      [4, 200],
      [5, 400],
      [6, 800],
    ] as const) {
      await until(`${writes} writes`, async () => stamps() >= writes)
      await sync.settled()
      assert.equal(stamps(), writes)
      time += delay
    }
    await until('the last write', async () => stamps() === 7)
  })

  test('changes of the tenant on such a host are synced immediately', async () => {
    await make()
    const { host, stamps } = stamping()
    // A clock that stands still, so that waiting code waits forever.
    const sync = start({ host, ticks: () => 0 })
    await until('some stamps', async () => stamps() > 3)
    await sync.settled()
    for (const port of [81, 82, 83]) {
      await v().patch(at, { subsets: [{ addresses: [{ ip: '10.0.0.1' }], ports: [{ port }] }] })
      await until('the change', async () => (await h().get(hostAt))?.subsets?.[0]?.ports?.[0]?.port === port)
      await sync.settled()
    }
  })
})
