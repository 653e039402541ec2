// The agent of a connected cluster, between the management API and a cluster in separate processes: cold start, changes, memory.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Resource } from '../src/api/object.ts'
import type { Resources } from '../src/api/resources.ts'
import { Secret } from '../src/reconcile/kubernetes-kinds.ts'
import { must, ours } from '../test/access/people.ts'
import { configOf } from '../test/gateway/gateway-fixture.ts'
import { killProgram, type Started, startOwnCluster, startProgram } from '../test/support/cluster-process.ts'
import { type Server, startServer } from '../test/support/server.ts'
import { changesPerSecond, measureLag } from './lag.ts'
import type { Figure, Measured } from './measurement.ts'
import { cpuOf, inParallel, quantile, residentOf, until } from './processes.ts'

const secrets = 100
const namespaces = Array.from({ length: 50 }, (_, index) => `space-${index}`)
const count = secrets * namespaces.length
const program = join(import.meta.dirname, '../bin/platform.js')
const path = `${ours}/namespaces/p-shop/projectsecrets`
const merge = { 'content-type': 'application/merge-patch+json' }
const nameOf = (index: number) => `app-${index}`
const dataOf = (stamp: number) => ({
  stamp: Buffer.from(String(stamp)).toString('base64'),
  password: Buffer.from(`password-${stamp}`.padEnd(200, '.')).toString('base64'),
})

/** Secrets that one change reaches, so that 50 changes arrive in a second. */
const single = namespaces.slice(0, 1)

export async function measureAgent(): Promise<Measured> {
  const directory = mkdtempSync(join(tmpdir(), 'platform-bench-'))
  const [service, cluster] = await Promise.all([startServer(), startOwnCluster()])
  try {
    const key = await connect(service)
    const config = join(directory, 'gateway.yaml')
    writeFileSync(join(directory, 'agent.key'), `${key}\n`)
    writeFileSync(join(directory, 'service-ca.crt'), service.ca)
    const over = {
      tls: { directory: 'tls' },
      clusters: [{ name: 'prod', kubeconfig: cluster.kubeconfig }],
      agent: { cluster: 'prod' },
    }
    writeFileSync(config, JSON.stringify(configOf(service, over)))
    const start = () => startProgram([program, 'gateway', '--config', config], /gateway is ready: \S+ (\S+)$/m)
    const empty = await start()
    await until(async () => isLeading(empty))
    await pause(2000)
    const idle = residentOf(empty.child.pid as number)
    // With SIGTERM, so that it releases its lease.
    await killProgram(empty.child, 'SIGTERM')
    await inParallel(secrets, async index => {
      const spec = { data: dataOf(0), deliver: [{ clusters: { names: ['prod'] } }] }
      await must(service.request('POST', path, { body: { metadata: { name: nameOf(index) }, spec } }))
    })

    const began = performance.now()
    const agent = await start()
    await until(async () => (await list(cluster.resources)) === count)
    const cold = (performance.now() - began) / 1000
    const work = cpuOf(agent.child.pid as number) / 1000
    await pause(3000)
    const each = (residentOf(agent.child.pid as number) - idle) / count / 1024
    const lags = await underChange(service, cluster.resources)
    await killProgram(agent.child)
    const figure = (what: string, value: number, unit: string, wanted: number): Figure => ({
      name: `agent: ${what}`,
      ...{ value, unit, wanted, direction: 'at-most' },
    })
    const [median, p99] = [quantile(lags, 0.5), quantile(lags, 0.99)]
    return {
      text: `agent            ${count} Secrets from cold in ${cold.toFixed(1)} s (wanted 30), ${work.toFixed(1)} s of its CPU; lag at ${changesPerSecond}/s: median ${median} ms, p99 ${p99} ms (wanted 500); ${each.toFixed(1)} KB an object (wanted 15)`,
      figures: [
        { ...figure('from cold', cold, 's', 30), note: `${count} Secrets, ${work.toFixed(1)} s of its own CPU` },
        { ...figure('lag at 50/s', p99, 'ms, p99', 500), note: `median ${median} ms` },
        figure('memory', each, 'KB an object', 15),
      ],
    }
  } finally {
    await Promise.all([service.kill(), cluster.close()])
    rmSync(directory, { recursive: true })
  }
}

/** Returns the key of the agent. */
async function connect(service: Server): Promise<string> {
  const spec = { projects: [{ project: 'shop', namespaces }] }
  const { metadata } = await must(
    service.request('POST', `${ours}/clusters`, { body: { metadata: { name: 'prod' }, spec } }),
  )
  const key = { subject: `platform:cluster:prod:${metadata.uid}`, scope: { roles: [{ role: 'agent' }] } }
  return (await must(service.request('POST', `${ours}/ownedaccesskeys`, { body: { spec: key } }))).spec.key
}

const isLeading = async ({ found }: Started) =>
  /\[\+\]agent ok: leading/.test(await (await fetch(`${found}/readyz?verbose`)).text())

const list = async (resources: Resources) => {
  const { items, remainingItemCount = 0 } = await resources.list(Secret, { limit: 1 })
  return items.length + remainingItemCount
}

/** From a change of a ProjectSecret to the watch of the cluster. */
async function underChange(service: Server, cluster: Resources): Promise<number[]> {
  await inParallel(secrets, async index => {
    const body = { spec: { deliver: [{ clusters: { names: ['prod'] }, namespaces: single }] } }
    await must(service.request('PATCH', `${path}/${nameOf(index)}`, { body, headers: merge }))
  })
  await until(async () => (await list(cluster)) === secrets)
  const { resourceVersion } = await cluster.list(Secret, { limit: 1 })
  return measureLag({
    watch: await cluster.watch(Secret, { resourceVersion }),
    stampOf: object => {
      const { data } = object as Resource & { readonly data?: { readonly stamp?: string } }
      return Number(Buffer.from(data?.stamp ?? '', 'base64').toString())
    },
    change: stamp =>
      service.request('PATCH', `${path}/${nameOf((stamp * 79) % secrets)}`, {
        body: { spec: { data: dataOf(stamp) } },
        headers: merge,
      }),
  })
}
