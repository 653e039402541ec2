// Random faults between the syncer and both sides, many times a second: errors, lost responses, broken or expired watches, unreachable sides, restarts.
// Afterwards the host equals the model.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { ApiError, expired } from '../../src/api/errors.ts'
import type { Json, Resource } from '../../src/api/object.ts'
import type { Resources, Watch } from '../../src/api/resources.ts'
import type { EndpointSync } from '../../src/vcluster/sync/endpoint-sync.ts'
import { startEndpointSync } from '../../src/vcluster/sync/endpoints-controller.ts'
import { endpointsKind } from '../../src/vcluster/sync/endpoints-kind.ts'
import { clusterKinds, Endpoints, type EndpointsObject, Service } from '../../src/vcluster/sync/kinds.ts'
import { endpoints, service, until } from '../support/cluster.ts'
import { buildApiServer } from '../support/in-process.ts'

const rounds = Number(process.env['SYNC_FAULT_ROUNDS'] ?? 6)
const roundMs = 800
const names = Array.from({ length: 6 }, (_, index) => `app-${index}`)
const mark = 'vcluster.platform.sh'

type Roll = (below: number) => number
function dice(seed: string): Roll {
  let count = 0
  return below => createHash('sha256').update(`${seed}/${count++}`).digest().readUInt32LE() % below
}

/** In a hundred, of every call; and whether it answers at all. */
type Weather = { faults: number; isAway: boolean; readonly watches: Set<Watch> }

function flaky(resources: Resources, weather: Weather, roll: Roll): Resources {
  const away = () => {
    if (weather.isAway) throw new ApiError(503, '', 'away')
  }
  const isBad = () => roll(100) < weather.faults
  const call = async <T>(run: () => Promise<T>): Promise<T> => {
    away()
    if (isBad()) throw new ApiError([503, 500, 429, 409][roll(4)] as number, '', 'not now')
    if (roll(3) === 0) await pause(roll(6))
    const result = await run()
    if (isBad()) throw new ApiError(503, '', 'the answer was lost')
    if (roll(3) === 0) await pause(roll(6))
    away()
    return result
  }
  return {
    ...resources,
    get: (...args) => call(() => resources.get(...args)),
    list: (...args) => call(() => resources.list(...args)),
    create: (...args) => call(() => resources.create(...args)),
    update: (...args) => call(() => resources.update(...args)),
    patch: (...args) => call(() => resources.patch(...args)),
    delete: (...args) => call(() => resources.delete(...args)),
    watch: async (...args) => {
      away()
      if (isBad()) throw expired('too old')
      return breakable(await resources.watch(...args), weather, { isBad, roll })
    },
  }
}

/** Data in flight is lost when the connection breaks. */
function breakable(
  watch: Watch,
  { watches }: Weather,
  { isBad, roll }: { readonly isBad: () => boolean; readonly roll: Roll },
): Watch {
  let isBroken = false
  const one: Watch = {
    async next() {
      const events = isBroken ? undefined : await watch.next()
      if (events && roll(4) === 0) await pause(roll(8))
      if (events && isBad()) one.stop()
      return isBroken ? undefined : events
    },
    bookmark: () => watch.bookmark(),
    stop() {
      isBroken = true
      watches.delete(one)
      watch.stop()
    },
  }
  watches.add(one)
  return one
}

const breakAll = ({ watches }: Weather) => {
  for (const watch of [...watches]) watch.stop()
}

type Sides = { readonly v: Resources; readonly h: Resources }

/** One change by somebody, on either side; objects may not be there. */
async function change({ v, h }: Sides, roll: Roll): Promise<void> {
  const name = names[roll(names.length)] as string
  const [at, hostAt] = [
    { namespace: 'default', name },
    { namespace: 'team', name: `${name}-x-default-x-vc` },
  ]
  const subsets = [{ addresses: [{ ip: `10.${roll(250)}.${roll(250)}.1` }], ports: [{ port: 1 + roll(1000) }] }]
  const merge = (body: Json) => ({ type: 'merge', body }) as const
  const makeService = () => v.create(Service, 'default', service(name) as unknown as Json)
  const acts: (() => Promise<unknown>)[] = [
    () => v.create(Endpoints, 'default', endpoints(name, { subsets }) as unknown as Json),
    makeService,
    makeService,
    () => v.patch(Endpoints, at, merge({ subsets })),
    () => v.patch(Endpoints, at, merge({ subsets, metadata: { labels: { v: String(roll(9)) } } })),
    () => v.patch(Endpoints, at, merge({ metadata: { labels: { v: null } } })),
    () => v.patch(Service, at, merge({ spec: { selector: roll(3) ? null : { app: name } } })),
    () => v.delete(roll(2) ? Endpoints : Service, at),
    () => h.patch(Endpoints, hostAt, merge({ subsets })),
    () => h.patch(Endpoints, hostAt, merge({ metadata: { labels: { h: String(roll(9)) } } })),
    () => h.delete(Endpoints, hostAt),
    () => h.delete(Endpoints, hostAt),
  ]
  await (acts[roll(acts.length)] as () => Promise<unknown>)().catch(() => {})
  if (roll(3) === 0) await pause(roll(5))
}

/** As the design says it, a second time. */
async function wantedAndSeen({ v, h }: Sides): Promise<readonly [unknown, unknown]> {
  const objects = async (side: Resources, kind = Endpoints) =>
    (await side.list(kind)).items.map(({ object }) => object as EndpointsObject)
  const isPlain = ({ spec }: Resource) => Object.keys((spec?.['selector'] ?? {}) as object).length === 0
  const plain = new Set((await objects(v, Service)).filter(isPlain).map(({ metadata }) => metadata.name))
  const byName = (a: { readonly name: string }, b: { readonly name: string }) => (a.name < b.name ? -1 : 1)
  const wanted = (await objects(v))
    .filter(({ metadata }) => plain.has(metadata.name))
    .map(({ metadata: { name, uid, labels = {} }, subsets }) => ({
      ...{ name: `${name}-x-default-x-vc`, uid, labels, subsets },
    }))
  const seen = (await objects(h)).map(({ metadata: { name = '', labels = {}, annotations = {} }, subsets }) => ({
    ...{ name, uid: annotations[`${mark}/object-uid`] },
    labels: Object.fromEntries(Object.entries(labels).filter(([key]) => !key.startsWith(mark))),
    subsets,
  }))
  return [wanted.toSorted(byName), seen.toSorted(byName)]
}

async function run(seed: string): Promise<void> {
  const roll = dice(seed)
  const clock = { now: Date.now, forward: () => {} }
  const [virtual, host] = await Promise.all([
    buildApiServer({ kinds: clusterKinds, clock }),
    buildApiServer({ kinds: clusterKinds, clock }),
  ])
  const sides = { v: virtual.resources, h: host.resources }
  const weathers: Weather[] = [0, 1].map(() => ({ faults: 8, isAway: false, watches: new Set() }))
  const [there, here] = weathers as [Weather, Weather]
  const start = () =>
    startEndpointSync({
      virtual: flaky(sides.v, there, roll),
      host: flaky(sides.h, here, roll),
      hostNamespaces: ['team'],
      vcluster: { name: 'vc', namespace: 'team' },
      synced: endpointsKind,
      hostDeletePolicy: 'Recreate',
      owner: undefined,
      denyReason: () => undefined,
      now: Date.now,
      reportToTenant: true,
      instance: 'test',
      random: () => roll(100) / 100,
      ticks: () => performance.now(),
      observer: { wrote: () => {}, lag: () => {}, failed: () => {}, syncFailure: () => {} },
    })
  let sync: EndpointSync = start()
  const stopped: Promise<void>[] = []
  const end = Date.now() + roundMs
  const people = async () => {
    while (Date.now() < end) await change(sides, roll)
  }
  const syncFailure = async () => {
    while (Date.now() < end) {
      await pause(5 + roll(40))
      const [weather, which] = [weathers[roll(2)] as Weather, roll(6)]
      if (which < 5) breakAll(weather)
      else {
        stopped.push(sync.stop())
        sync = start()
      }
      weather.isAway = which > 2 && which < 5
      if (weather.isAway) await pause(roll(60))
      weather.isAway = false
    }
  }
  await Promise.all([people(), people(), syncFailure()])
  for (const weather of weathers) weather.faults = 0
  let last: readonly [unknown, unknown] = ['', '']
  try {
    await until(
      'both sides alike',
      async () => {
        last = await wantedAndSeen(sides)
        return JSON.stringify(last[0]) === JSON.stringify(last[1])
      },
      30_000,
    ).catch(error => {
      assert.deepEqual(last[1], last[0], `seed ${seed}`)
      throw error
    })
  } finally {
    await Promise.all([...stopped, sync.stop()])
    await Promise.all([virtual.close(), host.close()])
  }
}

test(`${rounds} rounds of random faults: each converges to the model`, { timeout: 600_000 }, async t => {
  const seed = process.env['SYNC_FAULT_SEED'] ?? String(Date.now())
  t.diagnostic(`seed ${seed}`)
  for (let round = 0; round < rounds; round++) await run(`${seed}/${round}`)
})
