// Objects on the host that this syncer did not create: it never changes or deletes them, whatever the tenant does.

import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { Json, Metadata, Ref, Resource } from '../../src/api/object.ts'
import type { Resources } from '../../src/api/resources.ts'
import type { EndpointSync } from '../../src/vcluster/sync/endpoint-sync.ts'
import { type SyncOptions, startEndpointSync } from '../../src/vcluster/sync/endpoints-controller.ts'
import { endpointsKind } from '../../src/vcluster/sync/endpoints-kind.ts'
import { ConfigMap, Endpoints, Event, Service } from '../../src/vcluster/sync/kinds.ts'
import { hostName } from '../../src/vcluster/sync/names.ts'
import { openReferenceSync } from '../../src/vcluster/sync/reference-sync.ts'
import { type Cluster, endpoints, openCluster, people, until } from '../support/cluster.ts'

const mark = 'vcluster.platform.sh'
let clusters: Cluster[] = []
let running: EndpointSync | undefined
const side = (which: 0 | 1) => clusters[which] as Cluster
const [v, h] = [() => people(side(0)), () => people(side(1))]
const at = { namespace: 'default', name: 'web' }
const ips = (ip: string) => [{ addresses: [{ ip }], ports: [{ port: 80 }] }]
const annotation = (object: Resource | undefined, key: string) => object?.metadata.annotations?.[`${mark}/${key}`]
const conditionOf = async () => annotation(await v().get(at), 'conditions')
const foreign = () => until('the condition', async () => (await conditionOf())?.includes('HostObjectForeign'))

type Mode = { readonly name: string; readonly hostAt: Ref; readonly options: Partial<SyncOptions> }
const modes: readonly Mode[] = [
  {
    name: 'single-namespace mode',
    hostAt: { namespace: 'team', name: hostName('web', 'default', 'vc') },
    options: { vcluster: { name: 'vc', namespace: 'team' }, hostNamespaces: ['team'] },
  },
  {
    name: 'multi-namespace mode',
    hostAt: { namespace: 'team-default', name: 'web' },
    options: {
      vcluster: { name: 'vc', namespace: 'team', mapped: from => (from === 'default' ? 'team-default' : undefined) },
      hostNamespaces: ['team-default'],
    },
  },
]

function start({ options }: Mode, over: Partial<SyncOptions> = {}): EndpointSync {
  running = startEndpointSync({
    virtual: side(0).resources,
    host: side(1).resources,
    hostNamespaces: [],
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
    observer: { wrote: () => {}, lag: () => {}, failed: () => {}, syncFailure: () => {} },
    ...options,
    ...over,
  })
  return running
}
async function stop(): Promise<void> {
  await running?.stop()
  running = undefined
}

const make = async () => {
  await v().service('web')
  await v().create(endpoints('web'))
}
const theirs = ({ hostAt }: Mode, metadata: Metadata = {}) =>
  endpoints(hostAt.name, { metadata: { ...metadata, ...hostAt }, subsets: ips('10.7.7.7') }, hostAt.namespace)
/** Everything about it, its version too. */
const onHost = ({ hostAt }: Mode) => h().get(hostAt)
/** An object is ours once it has our marks and our address. */
const ours = (mode: Mode, ip = '10.0.0.1') =>
  until('our object', async () => {
    const object = await onHost(mode)
    return annotation(object, 'object-name') === 'web' && object?.subsets?.[0]?.addresses?.[0]?.ip === ip && object
  })

/** The marks as this syncer writes them for default/web, with changes; undefined takes one away. */
function marks({ hostAt }: Mode, uid: string, over: { [key: string]: string | undefined } = {}): Metadata {
  const all: { [key: string]: string | undefined } = {
    'vcluster-namespace': 'team',
    'object-name': 'web',
    'object-namespace': 'default',
    'object-uid': uid,
    'object-kind': 'Endpoints',
    'object-host-name': hostAt.name,
    'object-host-namespace': hostAt.namespace,
    ...over,
  }
  const { 'managed-by': managedBy = 'vc', ...rest } = all
  const entries = Object.entries(rest).filter((entry): entry is [string, string] => entry[1] !== undefined)
  return {
    ...('managed-by' in over && over['managed-by'] === undefined
      ? {}
      : { labels: { [`${mark}/managed-by`]: managedBy, [`${mark}/namespace`]: 'default' } }),
    annotations: Object.fromEntries(entries.map(([key, value]) => [`${mark}/${key}`, value])),
  }
}

const uidOf = async () => (await v().get(at))?.metadata.uid ?? ''
type Foreign = readonly [what: string, metadata: (mode: Mode, uid: string) => Metadata]
const foreignObjects: readonly Foreign[] = [
  ['without any mark', () => ({})],
  ['of a chart', () => ({ labels: { 'app.kubernetes.io/managed-by': 'Helm' } })],
  ['of the host’s own controller', () => ({ labels: { 'endpoints.kubernetes.io/managed-by': 'endpoint-controller' } })],
  ['with our label alone', () => ({ labels: { [`${mark}/managed-by`]: 'vc', [`${mark}/namespace`]: 'default' } })],
  ['without our label', (mode, uid) => marks(mode, uid, { 'managed-by': undefined })],
  ['of another virtual cluster', (mode, uid) => marks(mode, uid, { 'managed-by': 'other' })],
  ['of a virtual cluster of the same name elsewhere', mode => marks(mode, 'u', { 'vcluster-namespace': 'elsewhere' })],
  ['of another virtual object', (mode, uid) => marks(mode, uid, { 'object-name': 'api' })],
  ['of another virtual namespace', (mode, uid) => marks(mode, uid, { 'object-namespace': 'other' })],
  ['of another kind', (mode, uid) => marks(mode, uid, { 'object-kind': 'Secret' })],
  ['that is a copy of ours', (mode, uid) => marks(mode, uid, { 'object-host-name': 'original' })],
  ['that is a copy from elsewhere', (mode, uid) => marks(mode, uid, { 'object-host-namespace': 'elsewhere' })],
  ['without the name of the object', (mode, uid) => marks(mode, uid, { 'object-name': undefined })],
  ['without the uid of the object', mode => marks(mode, 'u', { 'object-uid': undefined })],
  ['of another syncer', () => ({ annotations: { 'vcluster.example.org/object-name': 'web' } })],
]

for (const mode of modes)
  describe(`objects that the syncer did not create, in ${mode.name}`, { timeout: 120_000 }, () => {
    beforeEach(async () => {
      clusters = await Promise.all([openCluster(), openCluster()])
    })
    afterEach(async () => {
      await stop()
      await Promise.all(clusters.map(cluster => cluster.close()))
    })

    for (const [what, metadata] of foreignObjects)
      test(`one ${what} stays unchanged when the virtual one is created, changed and deleted`, async () => {
        await make()
        await h().create(theirs(mode, metadata(mode, await uidOf())))
        const before = await onHost(mode)
        const sync = start(mode)
        await foreign()
        const event = await until('the Event', async () => (await v().list(Event))[0])
        const { reason, message } = event as unknown as { reason: string; message: string }
        assert.equal(reason, 'SyncError')
        assert.match(message, /^HostObjectForeign: .*default\/web/)
        await v().patch(at, { subsets: ips('10.0.0.2') })
        await sync.settled()
        assert.deepEqual(await onHost(mode), before, 'after a change')
        await v().patch(at, { spec: { selector: { app: 'web' } } }, Service)
        await until('the state', async () => sync.states().get('host-owned') === 1)
        await sync.settled()
        assert.deepEqual(await onHost(mode), before, 'after a selector')
        await v().remove(at, Service)
        await v().remove(at)
        await until('the end', async () => sync.states().size === 0)
        await sync.settled()
        await stop()
        await start(mode).ready
        await running?.settled()
        assert.deepEqual(await onHost(mode), before, 'after a deletion and a restart')
      })

    test('when it is deleted, ours is created immediately, and the condition ends', async () => {
      await make()
      await h().create(theirs(mode))
      start(mode)
      await foreign()
      await h().remove(mode.hostAt)
      await ours(mode)
      await until('the end of the condition', async () => (await conditionOf()) === undefined)
    })

    test('one that appears before our create is not overwritten: the server responds 409 and the tenant sees a condition', async () => {
      await make()
      const { resources } = side(1)
      let creates = 0
      const host: Resources = {
        ...resources,
        create: async (kind, namespace, object, options) => {
          if (creates++ === 0) await h().create(theirs(mode))
          return resources.create(kind, namespace, object, options)
        },
      }
      start(mode, { host })
      await foreign()
      assert.ok(creates > 0)
      const after = await onHost(mode)
      assert.deepEqual([after?.subsets?.[0]?.addresses?.[0]?.ip, after?.metadata.annotations], ['10.7.7.7', undefined])
      await h().remove(mode.hostAt)
      await ours(mode)
    })

    /** Ours goes, and another one takes its place, between what the syncer saw and what it does. */
    const replacing = (verb: 'update' | 'delete', replaced: () => void): Resources => {
      const { resources } = side(1)
      let isFirst = true
      const replace = async (object: Ref) => {
        if (!isFirst || object.name !== mode.hostAt.name) return
        isFirst = false
        await h().remove(mode.hostAt)
        await h().create(theirs(mode))
        replaced()
      }
      const host: Resources = {
        ...resources,
        update: async (kind, ref, object, options) => {
          if (verb === 'update') await replace(ref)
          return resources.update(kind, ref, object, options)
        },
        delete: async (kind, ref, options) => {
          if (verb === 'delete') await replace(ref)
          return resources.delete(kind, ref, options)
        },
      }
      return host
    }
    const ip = async () => (await onHost(mode))?.subsets?.[0]?.addresses?.[0]?.ip

    for (const verb of ['update', 'delete'] as const)
      test(`one that replaces ours before our ${verb} stays`, async () => {
        await make()
        let isReplaced = false
        const host = replacing(verb, () => {
          isReplaced = true
        })
        const sync = start(mode, { host })
        await ours(mode)
        await sync.settled()
        if (verb === 'update') await v().patch(at, { subsets: ips('10.0.0.2') })
        else await v().remove(at)
        await until('the replacement', async () => isReplaced)
        if (verb === 'update') await foreign()
        else await until('the end', async () => sync.states().size === 0)
        await sync.settled()
        assert.equal(await ip(), '10.7.7.7')
      })

    test('after a restart ours is recognized by its sync metadata, and a replacement is not taken over', async () => {
      await make()
      await start(mode).ready
      const first = await ours(mode)
      await stop()
      await v().patch(at, { subsets: ips('10.0.0.2') })
      start(mode)
      assert.equal((await ours(mode, '10.0.0.2')).metadata.uid, first.metadata.uid)
      await stop()
      await h().remove(mode.hostAt)
      await h().create(theirs(mode))
      const before = await onHost(mode)
      start(mode)
      await foreign()
      await running?.settled()
      assert.deepEqual(await onHost(mode), before)
    })

    test('ours for an earlier object of that name is taken over, also after a restart', async () => {
      await make()
      await start(mode).ready
      const first = await ours(mode)
      await stop()
      await v().remove(at)
      await v().create(endpoints('web', { subsets: ips('10.0.0.3') }))
      start(mode)
      const next = await ours(mode, '10.0.0.3')
      assert.equal(next.metadata.uid, first.metadata.uid)
      assert.equal(annotation(next, 'object-uid'), await uidOf())
    })

    test('one of an earlier version, without the namespace of the virtual cluster, is taken over', async () => {
      await make()
      await h().create(theirs(mode, marks(mode, await uidOf(), { 'vcluster-namespace': undefined })))
      start(mode)
      assert.equal(annotation(await ours(mode), 'vcluster-namespace'), 'team')
    })

    test('removing the sync metadata makes it foreign; when it is restored, or the object is deleted, the sync continues', async () => {
      await make()
      const sync = start(mode)
      await ours(mode)
      const setUid = (uid: string | null) =>
        h().patch(mode.hostAt, { metadata: { annotations: { [`${mark}/object-uid`]: uid } } })
      await setUid(null)
      await foreign()
      await v().patch(at, { subsets: ips('10.0.0.4') })
      await sync.settled()
      assert.equal(await ip(), '10.0.0.1')
      await setUid(await uidOf())
      await ours(mode, '10.0.0.4')
    })

    test('sync metadata on objects of a tenant does not reach the host as such', async () => {
      await v().service('web')
      const forged = marks(mode, 'forged', { 'managed-by': 'other', 'object-name': 'theirs', conditions: '[]' })
      const more = { [`${mark}/managed-annotations`]: '{}', [`${mark}/imported-from`]: 'x', ['note']: 'mine' }
      await v().create(
        endpoints('web', {
          metadata: { labels: { ...forged.labels, app: 'web' }, annotations: { ...forged.annotations, ...more } },
        }),
      )
      start(mode)
      const { labels = {}, annotations = {} } = (await ours(mode)).metadata
      const { labels: ownLabels, annotations: ownAnnotations } = marks(mode, await uidOf())
      const { [`${mark}/managed-annotations`]: _, ...rest } = annotations
      assert.deepEqual(rest, { ...ownAnnotations, note: 'mine' })
      for (const [key, value] of Object.entries(ownLabels ?? {})) assert.equal(labels[key], value)
      const others = Object.keys(labels).filter(key => key.startsWith(mark) && !(key in (ownLabels ?? {})))
      // A label of the tenant under a reserved key is kept under a key that means nothing to the syncer.
      for (const key of others) assert.match(key, /^vcluster\.platform\.sh\/label-vc-x-[0-9a-f]{10}$/)
    })

    const copyAt = { namespace: mode.hostAt.namespace, name: 'copy' }
    const bring = () =>
      openReferenceSync({
        ...{ virtual: side(0).resources, host: side(1).resources, owner: undefined, importAllow: [] },
        ...{ vcluster: { name: 'vc', namespace: 'team' }, pushes: { ConfigMap: true, Secret: true } },
        ...(mode.options.vcluster ? { vcluster: mode.options.vcluster } : {}),
      }).sync({
        ...{ apiVersion: 'v1', kind: 'ConfigMap', ...at, path: '' },
        ...{ hostNamespace: copyAt.namespace, hostName: copyAt.name },
      })
    const configMap = (metadata: Metadata, data: Json) =>
      ({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data }) as unknown as Resource
    const place = { 'object-kind': 'ConfigMap', 'object-host-name': 'copy' }

    test('a copy of a reference is written and removed only if the syncer created it', async () => {
      const own = await v().create(configMap(at, { a: 'tenant' }))
      const uid = own.metadata.uid ?? ''
      const wrong: readonly Metadata[] = [
        {},
        marks(mode, uid, { ...place, 'managed-by': 'other' }),
        marks(mode, uid, { ...place, 'managed-by': undefined }),
        marks(mode, 'u', { ...place, 'vcluster-namespace': 'elsewhere' }),
        marks(mode, uid, { ...place, 'object-name': 'api' }),
        marks(mode, uid, { ...place, 'object-kind': 'Secret' }),
        marks(mode, uid, { ...place, 'object-host-name': 'original' }),
        marks(mode, uid, { ...place, 'object-uid': undefined }),
      ]
      for (const metadata of wrong) {
        await h().create(configMap({ ...metadata, ...copyAt }, { a: 'host' }))
        const before = await h().get(copyAt, ConfigMap)
        await assert.rejects(bring(), /was not created by this syncer/, JSON.stringify(metadata))
        assert.deepEqual(await h().get(copyAt, ConfigMap), before)
        await h().remove(copyAt, ConfigMap)
      }
      await bring()
      const copy = await h().get(copyAt, ConfigMap)
      assert.deepEqual((copy as unknown as { data: Json }).data, { a: 'tenant' })
      await v().remove(at, ConfigMap)
      for (const metadata of wrong) {
        await h()
          .remove(copyAt, ConfigMap)
          .catch(() => {})
        await h().create(configMap({ ...metadata, ...copyAt }, { a: 'host' }))
        const before = await h().get(copyAt, ConfigMap)
        await bring().catch(() => {})
        await v()
          .remove(at, ConfigMap)
          .catch(() => {}) // an import
        assert.deepEqual(await h().get(copyAt, ConfigMap), before, JSON.stringify(metadata))
      }
    })
  })

test('in multi-namespace mode a tenant cannot change the Endpoints of the host’s own API server', async () => {
  clusters = await Promise.all([openCluster(), openCluster()])
  try {
    const kubernetes = { namespace: 'default', name: 'kubernetes' }
    if (!(await h().get(kubernetes))) await h().create(endpoints('kubernetes', { subsets: ips('10.7.7.7') }))
    const before = await h().get(kubernetes)
    await v().service('kubernetes', undefined, 'team')
    await v().create(endpoints('kubernetes', {}, 'team'))
    const vcluster = {
      name: 'vc',
      namespace: 'team',
      mapped: (from: string) => (from === 'team' ? 'default' : undefined),
    }
    const sync = start(modes[1] as Mode, { vcluster, hostNamespaces: ['default'] })
    const tenants = { namespace: 'team', name: 'kubernetes' }
    await until('the condition', async () => annotation(await v().get(tenants), 'conditions'))
    await v().remove(tenants, Endpoints)
    await until('the end', async () => sync.states().size === 0)
    await sync.settled()
    assert.deepEqual(await h().get(kubernetes), before)
  } finally {
    await stop()
    await Promise.all(clusters.map(cluster => cluster.close()))
  }
})
