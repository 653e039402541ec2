// The syncer between two API servers in separate processes: cold start, changes, memory, and the cost of patches.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Json } from '../src/api/object.ts'
import type { Resources } from '../src/api/resources.ts'
import { Endpoints, type EndpointsObject, Service } from '../src/vcluster/sync/kinds.ts'
import { endpoints, service } from '../test/support/cluster.ts'
import {
  type ClusterProcess,
  killProgram,
  type Started,
  startCluster,
  startProgram,
} from '../test/support/cluster-process.ts'
import { changesPerSecond, measureLag } from './lag.ts'
import type { Figure, Measured } from './measurement.ts'
import { cpuOf, inParallel, quantile, residentOf, until } from './processes.ts'

const count = Number(process.env['BENCH_ENDPOINTS'] ?? 5000)
const program = join(import.meta.dirname, '../bin/platform.js')
const license = join(import.meta.dirname, '../examples/development.license')

const patches = `sync:
  toHost:
    endpoints:
      patches:
      - path: subsets[*].addresses[*].hostname
        expression: '"h-" + value'
      - path: metadata.annotations["example.org/service"]
        expression: virtualToHostDNS(value)
`

export async function measureSync(): Promise<Measured> {
  const plain = await measure('sync', '')
  const patched = await measure('sync, 2 patches', patches)
  const share = 1 - plain.cpu / patched.cpu
  const told = { name: 'sync, 2 patches: share', value: share * 100, unit: '% of its CPU time' }
  const sandbox = (patched.idle - plain.idle) / 2 ** 20
  const fixed = { name: 'sync, 2 patches: sandbox', value: sandbox, unit: 'MB, once' }
  const all = `${((patched.busy - plain.idle) / count / 1024).toFixed(1)} KB an object were it counted with them`
  return {
    text: `${plain.line}\n${patched.line}; patches are ${Math.round(share * 100)}% of its CPU time; the sandbox is ${Math.round(sandbox)} MB, once (${all})`,
    figures: [
      ...plain.figures,
      ...patched.figures,
      { ...told, direction: 'at-most' },
      { ...fixed, direction: 'at-most', note: all },
    ],
  }
}

/** `idle`, `busy`: resident bytes with nothing to sync, and with everything synced. */
type Run = {
  readonly line: string
  readonly cpu: number
  readonly idle: number
  readonly busy: number
  readonly figures: readonly Figure[]
}

async function measure(name: string, config: string): Promise<Run> {
  const directory = mkdtempSync(join(tmpdir(), 'platform-bench-'))
  const file = join(directory, 'vcluster.yaml')
  writeFileSync(file, config)
  const [virtual, host] = await Promise.all([startCluster(), startCluster()])
  try {
    const empty = await startSync(file, virtual, host)
    await until(async () => (await fetch(`${empty.found}/readyz`)).status === 200)
    await pause(2000)
    const idle = residentOf(empty.child.pid as number)
    await killProgram(empty.child)
    await fill(virtual.resources)

    const start = performance.now()
    const sync = await startSync(file, virtual, host)
    await until(async () => (await host.resources.list(Endpoints, { limit: 1 })).remainingItemCount === count - 1)
    const cold = (performance.now() - start) / 1000
    const work = cpuOf(sync.child.pid as number) / 1000
    await pause(3000)
    const busy = residentOf(sync.child.pid as number)
    const each = (busy - idle) / count
    const lags = await underChange(virtual.resources, host.resources)
    const cpu = cpuOf(sync.child.pid as number) / 1000
    await killProgram(sync.child)
    const line = [
      `${name.padEnd(16)} ${count} from cold in ${cold.toFixed(1)} s (wanted 30), ${work.toFixed(1)} s of its CPU`,
      `lag at ${changesPerSecond}/s: median ${quantile(lags, 0.5)} ms, p99 ${quantile(lags, 0.99)} ms (wanted 250)`,
      `${(each / 1024).toFixed(1)} KB an object (wanted 20)`,
    ].join('; ')
    const figure = (what: string, value: number, unit: string, wanted: number): Figure => ({
      name: `${name}: ${what}`,
      ...{ value, unit, wanted, direction: 'at-most' },
    })
    const figures = [
      { ...figure('from cold', cold, 's', 30), note: `${count} objects, ${work.toFixed(1)} s of its own CPU` },
      { ...figure('lag at 50/s', quantile(lags, 0.99), 'ms, p99', 250), note: `median ${quantile(lags, 0.5)} ms` },
      figure('memory', each / 1024, 'KB an object', 20),
    ]
    return { line, cpu, idle, busy, figures }
  } finally {
    await Promise.all([virtual.close(), host.close()])
    rmSync(directory, { recursive: true })
  }
}

function startSync(file: string, virtual: ClusterProcess, host: ClusterProcess): Promise<Started> {
  const kubeconfigs = ['--virtual-kubeconfig', virtual.kubeconfig, '--host-kubeconfig', host.kubeconfig]
  const rest = ['--name', 'vc', '--namespace', 'team', '--listen', '127.0.0.1:0', '--license', license]
  const args = [program, 'vcluster', 'sync', '-f', file, ...kubeconfigs, ...rest, '--log-level', 'error']
  return startProgram(args, /^platform: syncing endpoints of vc to team, status at (\S+)$/m)
}

const nameOf = (index: number) => `app-${index}`
const ready = (index: number, stamp: number) => [
  {
    addresses: [1, 2, 3].map(last => ({ ip: `10.${index >> 8}.${index & 255}.${last}`, hostname: `n${last}` })),
    ports: [
      { name: 'http', port: 80 },
      { name: 'stamp', port: 1 + stamp },
    ],
  },
]

async function fill(resources: Resources): Promise<void> {
  await inParallel(count, async index => {
    const name = nameOf(index)
    const metadata = {
      labels: { app: name, tier: 'web' },
      annotations: { 'example.org/service': `${name}.default.svc`, 'example.org/owner': 'somebody@example.org' },
    }
    await resources.create(Service, 'default', service(name) as unknown as Json)
    await resources.create(
      Endpoints,
      'default',
      endpoints(name, { metadata, subsets: ready(index, 0) }) as unknown as Json,
    )
  })
}

/** From a change on the virtual side to the watch of the host. */
async function underChange(virtual: Resources, host: Resources): Promise<number[]> {
  const { resourceVersion } = await host.list(Endpoints, { limit: 1 })
  return measureLag({
    watch: await host.watch(Endpoints, { resourceVersion }),
    stampOf: object => ((object as EndpointsObject).subsets?.[0]?.ports?.[1]?.port ?? 0) - 1,
    change: stamp => {
      const index = (stamp * 7919) % count
      const body = { subsets: ready(index, stamp) } as unknown as Json
      return virtual.patch(Endpoints, { namespace: 'default', name: nameOf(index) }, { type: 'merge', body })
    },
  })
}
