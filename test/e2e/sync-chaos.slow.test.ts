// Both API servers and the syncer are killed and restarted at random under change. Afterwards the host equals a model that shares no code with the syncer,
// object by object.

import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import type { Json, Resource } from '../../src/api/object.ts'
import { Endpoints, type EndpointsObject, Service } from '../../src/vcluster/sync/kinds.ts'
import { endpoints, people, service, until } from '../support/cluster.ts'
import { type ClusterProcess, killProgram, startCluster, startProgram } from '../support/cluster-process.ts'

const seconds = Number(process.env['SYNC_CHAOS_SECONDS'] ?? 20)
/** A slow machine continues until this many kills. */
const least = Number(process.env['SYNC_CHAOS_KILLS'] ?? 5)
const program = join(import.meta.dirname, '../../bin/platform.js')
const names = Array.from({ length: 20 }, (_, index) => `app-${index}`)
const mark = 'vcluster.platform.sh'

/** As the design says it, a second time. */
function hostNameOf(name: string): string {
  const full = `${name}-x-default-x-vc`
  assert.ok(full.length <= 63)
  return full
}

type Expected = { readonly name: string; readonly subsets: unknown; readonly labels: object; readonly uid: string }

/** The advertised address of the API server. */
const isOfTheServer = ({ namespace, name }: Resource['metadata']) => namespace === 'default' && name === 'kubernetes'

function model(objects: readonly EndpointsObject[], services: readonly Resource[]): Expected[] {
  const plain = new Set(
    services
      .filter(({ spec }) => Object.keys((spec?.['selector'] ?? {}) as object).length === 0)
      .map(one => one.metadata.name),
  )
  return objects
    .filter(({ metadata }) => plain.has(metadata.name) && !isOfTheServer(metadata))
    .map(({ metadata: { name = '', uid = '', labels = {} }, subsets }) => ({
      name: hostNameOf(name),
      subsets,
      labels,
      uid,
    }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

function seen(objects: readonly EndpointsObject[]): Expected[] {
  return objects
    .filter(({ metadata }) => !isOfTheServer(metadata))
    .map(({ metadata: { name = '', labels = {}, annotations = {} }, subsets }) => {
      const own = Object.fromEntries(Object.entries(labels).filter(([key]) => !key.startsWith(mark)))
      assert.equal(labels[`${mark}/managed-by`], 'vc')
      return { name, subsets, labels: own, uid: annotations[`${mark}/object-uid`] ?? '' }
    })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

/** Numbers that look random and are the same in every run. */
function dice(seed: string): (below: number) => number {
  let count = 0
  return below => createHash('sha256').update(`${seed}/${count++}`).digest().readUInt32LE() % below
}

test(`servers and syncer killed at random for ${seconds} s under change: it converges to the model`, {
  timeout: 240_000,
}, async t => {
  const seed = process.env['SYNC_CHAOS_SEED'] ?? String(Date.now())
  t.diagnostic(`seed ${seed}`)
  const directory = mkdtempSync(join(tmpdir(), 'platform-sync-'))
  const [virtual, host] = await Promise.all([startCluster(), startCluster()])
  const file = join(directory, 'vcluster.yaml')
  writeFileSync(file, '')
  const startSync = async () => {
    const files = ['-f', file, '--virtual-kubeconfig', virtual.kubeconfig, '--host-kubeconfig', host.kubeconfig]
    const args = [program, 'vcluster', 'sync', ...files, '--name', 'vc', '--namespace', 'team', '--log-level', 'error']
    return (await startProgram(args, /^platform: syncing (endpoints)/m)).child
  }
  let syncer: ChildProcess = await startSync()
  try {
    const end = Date.now() + seconds * 1000
    let [changes, kills] = [0, 0]
    const isOver = () => Date.now() >= end && changes > 20 * least && kills >= least
    const tenants = async (roll: ReturnType<typeof dice>) => {
      while (!isOver()) {
        if (await change(virtual, host, roll)) changes++
        await pause(5)
      }
    }
    const chaos = async () => {
      const roll = dice(`${seed}/chaos`)
      while (!isOver()) {
        await pause(300 + roll(900))
        const which = roll(5)
        kills++
        if (which === 4) {
          await killProgram(syncer)
          syncer = await startSync()
        } else {
          const cluster = which % 2 ? virtual : host
          await cluster.kill()
          await pause(roll(400))
          await cluster.start()
        }
      }
    }
    await Promise.all([tenants(dice(`${seed}/1`)), tenants(dice(`${seed}/2`)), chaos()])
    const [v, h] = [people(virtual), people(host)]
    let last: readonly [unknown, unknown] = ['', '']
    await until(
      'both sides alike',
      async () => {
        const services = (await v.list(Service)) as Resource[]
        last = [seen(await h.list()), model(await v.list(), services)]
        return JSON.stringify(last[0]) === JSON.stringify(last[1])
      },
      60_000,
    ).catch(error => {
      assert.deepEqual(last[0], last[1])
      throw error
    })
    t.diagnostic(`${changes} changes, ${kills} kills`)
  } finally {
    await killProgram(syncer)
    await Promise.all([virtual.close(), host.close()])
    rmSync(directory, { recursive: true })
  }
})

/** One change by somebody, on either side; whether it went through. Servers may be away, and objects as well. */
async function change(virtual: ClusterProcess, host: ClusterProcess, roll: ReturnType<typeof dice>): Promise<boolean> {
  const name = names[roll(names.length)] as string
  const at = { namespace: 'default', name }
  const hostAt = { namespace: 'team', name: hostNameOf(name) }
  const subsets = [{ addresses: [{ ip: `10.${roll(250)}.${roll(250)}.1` }], ports: [{ port: 1 + roll(1000) }] }]
  const merge = (body: Json) => ({ type: 'merge', body }) as const
  const v = virtual.resources
  const h = host.resources
  const acts: (() => Promise<unknown>)[] = [
    () => v.create(Endpoints, 'default', endpoints(name, { subsets }) as unknown as Json),
    () => v.create(Service, 'default', service(name) as unknown as Json),
    () => v.patch(Endpoints, at, merge({ subsets })),
    () => v.patch(Endpoints, at, merge({ subsets, metadata: { labels: { v: String(roll(9)) } } })),
    () => v.patch(Endpoints, at, merge({ metadata: { labels: { v: null } } })),
    () => v.patch(Service, at, merge({ spec: { selector: { app: name } } })),
    () => v.patch(Service, at, merge({ spec: { selector: null } })),
    () => v.patch(Service, at, merge({ spec: { selector: null } })),
    () => (roll(3) ? Promise.resolve() : v.delete(Endpoints, at)),
    () => (roll(3) ? Promise.resolve() : v.delete(Service, at)),
    () => h.patch(Endpoints, hostAt, merge({ subsets })),
    () => h.patch(Endpoints, hostAt, merge({ metadata: { labels: { h: String(roll(9)) } } })),
    () => h.delete(Endpoints, hostAt),
  ]
  return (acts[roll(acts.length)] as () => Promise<unknown>)().then(
    () => true,
    () => false,
  )
}
