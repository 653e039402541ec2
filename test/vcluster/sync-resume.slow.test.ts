// A side that becomes unreachable and comes back: the cache is compared with the new list, and failed objects are retried.

import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { ApiError, expired } from '../../src/api/errors.ts'
import type { Resources, Watch } from '../../src/api/resources.ts'
import type { EndpointSync } from '../../src/vcluster/sync/endpoint-sync.ts'
import { type SyncOptions, startEndpointSync } from '../../src/vcluster/sync/endpoints-controller.ts'
import { endpointsKind } from '../../src/vcluster/sync/endpoints-kind.ts'
import { Endpoints } from '../../src/vcluster/sync/kinds.ts'
import { hostName } from '../../src/vcluster/sync/names.ts'
import { hostUidAnnotation } from '../../src/vcluster/sync/sync-annotations.ts'
import { type Cluster, endpoints, openCluster, people, until } from '../support/cluster.ts'

let clusters: Cluster[] = []
let running: EndpointSync | undefined
const side = (which: 0 | 1) => clusters[which] as Cluster
const hostAt = { namespace: 'team', name: hostName('web', 'default', 'vc') }
const at = { namespace: 'default', name: 'web' }
const onHost = () => people(side(1)).get(hostAt)

function start(over: Partial<SyncOptions>): EndpointSync {
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
    observer: { wrote: () => {}, lag: () => {}, failed: () => {}, syncFailure: () => {} },
    ...over,
  })
  return running
}

async function make(): Promise<void> {
  await people(side(0)).service('web')
  await people(side(0)).create(endpoints('web'))
}

/** A watch without events that ends on demand. */
function silent(lost: Promise<void>, like: Watch): Watch {
  return {
    next: async () => {
      await lost
      return undefined
    },
    bookmark: () => like.bookmark(),
    stop: () => like.stop(),
  }
}

/**
 * The host's first watch breaks on demand; the next list waits before or after it is read, until the test lets it
 * continue.
 */
function slowList(resources: Resources, waits: 'before' | 'after') {
  const [lost, asked, goOn] = [0, 1, 2].map(() => Promise.withResolvers<void>()) as [Told, Told, Told]
  let [watches, lists] = [0, 0]
  const host: Resources = {
    ...resources,
    list: async (kind, options) => {
      if (++lists !== 2) return resources.list(kind, options)
      if (waits === 'after') {
        const early = await resources.list(kind, options)
        asked.resolve()
        await goOn.promise
        return early
      }
      asked.resolve()
      await goOn.promise
      return resources.list(kind, options)
    },
    watch: async (kind, options) => {
      watches++
      if (watches === 2) throw expired('too old')
      const watch = await resources.watch(kind, options)
      return watches === 1 ? silent(lost.promise, watch) : watch
    },
  }
  return { host, lost, asked, goOn, watches: () => watches }
}
type Told = PromiseWithResolvers<void>

const marked = async () =>
  Object.keys((await people(side(0)).get(at))?.metadata.annotations ?? {}).some(key => key === hostUidAnnotation)

describe('a side that becomes unreachable and comes back', { timeout: 120_000 }, () => {
  beforeEach(async () => {
    clusters = await Promise.all([openCluster(), openCluster()])
  })
  afterEach(async () => {
    await running?.stop()
    running = undefined
    await Promise.all(clusters.map(cluster => cluster.close()))
  })

  test('an object that was created, not yet seen by the watch, and deleted before the new list, is created again', async () => {
    await make()
    const { resources } = side(1)
    const lost = Promise.withResolvers<void>()
    let watches = 0
    const host: Resources = {
      ...resources,
      watch: async (kind, options) => {
        watches++
        if (watches === 2) throw expired('too old')
        const watch = await resources.watch(kind, options)
        return watches === 1 ? silent(lost.promise, watch) : watch
      },
    }
    const sync = start({ host })
    const made = await until('the object', onHost)
    await until('its end', async () => sync.states().get('synced') === 1)
    await people(side(1)).remove(hostAt)
    lost.resolve()
    await until('another one', async () => {
      const again = await onHost()
      return again && again.metadata.uid !== made.metadata.uid
    })
  })

  test('an object that was changed, not yet seen by the watch, and deleted by then, is not updated forever', async () => {
    await make()
    const { resources } = side(1)
    let isDeaf = false
    const lost = Promise.withResolvers<void>()
    const host: Resources = {
      ...resources,
      watch: async (kind, options) => {
        const watch = await resources.watch(kind, options)
        return {
          ...silent(lost.promise, watch),
          next: async () => {
            const events = await watch.next()
            if (isDeaf) await lost.promise
            return isDeaf ? undefined : events
          },
        }
      },
    }
    const sync = start({ host })
    await until('the object', onHost)
    await sync.settled()
    isDeaf = true
    const subsets = [{ addresses: [{ ip: '10.0.0.9' }], ports: [{ port: 1 }] }]
    await people(side(0)).patch(at, { subsets })
    await until('the change', async () => (await onHost())?.subsets?.[0]?.addresses?.[0]?.ip === '10.0.0.9')
    await people(side(1)).remove(hostAt)
    await people(side(0)).patch(at, { metadata: { labels: { again: 'yes' } } })
    isDeaf = false
    lost.resolve()
    await until('another one', onHost)
  })

  test('an object that was created during the list does not count as deleted, although the list lacks it', async () => {
    const { host, lost, asked, goOn, watches } = slowList(side(1).resources, 'after')
    const sync = start({ host, hostDeletePolicy: 'Propagate' })
    await sync.ready
    lost.resolve()
    await asked.promise
    await make()
    const made = await until('the object', onHost)
    await until('the mark', marked)
    await sync.settled()
    goOn.resolve()
    await until('the next watch', async () => watches() === 3)
    await sync.settled()
    assert.ok(await people(side(0)).get(at), 'the tenant’s object')
    await people(side(0)).patch(at, { metadata: { labels: { later: 'yes' } } })
    const later = await until('a change', async () => {
      const object = await onHost()
      return object?.metadata.labels?.['later'] === 'yes' && object
    })
    assert.equal(later.metadata.uid, made.metadata.uid)
  })

  for (const policy of ['Recreate', 'Propagate'] as const)
    test(`an object that was created after the list request and deleted before the read is known to be deleted: ${policy}`, async () => {
      const { host, lost, asked, goOn } = slowList(side(1).resources, 'before')
      const sync = start({ host, hostDeletePolicy: policy })
      await sync.ready
      lost.resolve()
      await asked.promise
      await make()
      const made = await until('the object', onHost)
      if (policy === 'Propagate') await until('the mark', marked)
      await sync.settled()
      await people(side(1)).remove(hostAt)
      goOn.resolve()
      if (policy === 'Propagate')
        await until('the end of the other, too', async () => (await people(side(0)).get(at)) === undefined)
      else
        await until('another one', async () => {
          const again = await onHost()
          return again && again.metadata.uid !== made.metadata.uid
        })
    })

  test('objects that failed while the host was unreachable are retried once it responds, even without events', async () => {
    const { resources } = side(1)
    let isAway = false
    let refused = 0
    const gone = Promise.withResolvers<void>()
    const away = () => {
      if (isAway) throw new ApiError(503, '', 'away', { details: { retryAfterSeconds: 3600 } })
    }
    const host: Resources = {
      ...resources,
      create: async (...args) => {
        if (isAway) refused++
        away()
        return resources.create(...args)
      },
      watch: async (kind, options) => {
        away()
        const watch = await resources.watch(kind, options)
        return refused ? watch : silent(gone.promise, watch)
      },
    }
    const sync = start({ host })
    await sync.ready
    isAway = true
    gone.resolve()
    await make()
    await until('a failure', async () => refused > 0)
    isAway = false
    await until('the object', onHost)
  })

  test('the virtual side, too', async () => {
    await make()
    const { resources } = side(0)
    let isAway = false
    let refused = 0
    const gone = Promise.withResolvers<void>()
    const virtual: Resources = {
      ...resources,
      update: async (...args) => {
        if (isAway) {
          refused++
          throw new ApiError(503, '', 'away', { details: { retryAfterSeconds: 3600 } })
        }
        return resources.update(...args)
      },
      watch: async (kind, options) => {
        if (isAway) throw new ApiError(503, '', 'away')
        const watch = await resources.watch(kind, options)
        return refused || kind !== Endpoints ? watch : silent(gone.promise, watch)
      },
    }
    start({ virtual })
    await until('the object', onHost)
    isAway = true
    await people(side(1)).patch(hostAt, { metadata: { labels: { edited: 'yes' } } })
    await until('a failure', async () => refused > 0)
    gone.resolve()
    isAway = false
    await until('the edit', async () => (await people(side(0)).get(at))?.metadata.labels?.['edited'] === 'yes')
    assert.ok(refused > 0)
  })
})
