// `npm run bench`: the measured claims, as ratios inside one run against a bare node:https server (docs/BENCH.md).

import { request } from 'node:https'
import { measureAuthorize } from './authorize.ts'
import { measureCli } from './cli.ts'
import { measureGateway } from './gateway.ts'
import { drive, generator, type Load } from './load.ts'
import { measurePatches } from './patches.ts'
import { remove, type Server, startBare, startServer } from './processes.ts'
import { measureRights } from './rights.ts'
import { measureScale } from './scale.ts'
import { measureSync } from './sync.ts'
import { measureWatch } from './watch.ts'

const teams = '/kubernetes/management/apis/management.platform.sh/v1/teams'
const seconds = Number(process.env['BENCH_SECONDS'] ?? 3)
const rounds = 3
const only = process.argv[2]

const median = (values: readonly number[]) =>
  [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)] as number
const padding = 'x'.repeat(500)
const team = (name: string) =>
  JSON.stringify({ metadata: { name, labels: { app: name } }, spec: { description: padding, users: ['ada'] } })

type Row = {
  readonly name: string
  readonly ours: number
  readonly bare: number
  readonly target: number
  readonly errors: number
}

/** Alternating, so that a noisy neighbour disturbs both alike. */
async function compare(name: string, ours: Load, bare: Load, target: number): Promise<Row> {
  const results = { ours: [] as number[], bare: [] as number[] }
  let errors = 0
  for (let round = 0; round < rounds; round++) {
    results.bare.push((await drive(bare)).perSecond)
    const rate = await drive(ours)
    results.ours.push(rate.perSecond)
    errors += rate.errors
  }
  return { name, ours: median(results.ours), bare: median(results.bare), target, errors }
}

function send(server: Server, method: string, path: string, body?: string): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const headers = { Authorization: `Bearer ${server.key}`, ...(body ? { 'Content-Type': 'application/json' } : {}) }
    const sent = request(server.url + path, { method, rejectUnauthorized: false, headers }, response => {
      const chunks: Buffer[] = []
      response.on('data', chunk => chunks.push(chunk)).on('end', () => resolve(Buffer.concat(chunks)))
    })
    sent.on('error', reject).end(body)
  })
}

async function rates(): Promise<Row[]> {
  const server = await startServer()
  for (let index = 0; index < 1000; index++) await send(server, 'POST', teams, team(`team-${index}`))
  const one = await send(server, 'GET', `${teams}/team-1`)
  const page = await send(server, 'GET', `${teams}?limit=500`)
  const [small, large] = [await startBare(one.length), await startBare(page.length)]
  const base = { key: server.key, seconds }
  const rows: Row[] = []
  const row = async (
    name: string,
    target: number,
    load: Partial<Load> & { path: string },
    yardstick: string,
    connections: number,
  ) => {
    if (only && !name.includes(only)) return
    const ours = { ...base, ...load, connections, url: server.url }
    rows.push(await compare(name, ours, { ...ours, url: yardstick }, target))
  }
  await row('get one', 0.6, { path: `${teams}/team-%d` }, small.url, 32)
  await row('page of 500', 0.7, { path: `${teams}?limit=500` }, large.url, 8)
  await row('durable create', 0.25, { method: 'POST', path: teams, body: team('bench-%d') }, small.url, 64)
  const patch = JSON.stringify({ spec: { displayName: 'n-%d' } })
  await row(
    'patch',
    0.2,
    { method: 'PATCH', path: `${teams}/team-%d`, body: patch, type: 'application/merge-patch+json' },
    small.url,
    64,
  )
  await Promise.all([server.stop(), small.stop(), large.stop()])
  remove(server.directory)
  return rows
}

console.log(`load generator: ${generator}; ${rounds} rounds of ${seconds} s each, medians`)
for (const { name, ours, bare, target, errors } of await rates())
  console.log(
    `${name.padEnd(16)} ${Math.round(ours).toString().padStart(7)}/s   bare ${Math.round(bare).toString().padStart(7)}/s   ratio ${(ours / bare).toFixed(2)} (wanted ${target})${errors ? `   ${errors} errors` : ''}`,
  )
if (!only || only === 'watch') console.log(await measureWatch())
if (!only || only === 'authorize') console.log(await measureAuthorize())
if (!only || only === 'rights') console.log(await measureRights(seconds))
if (!only || only === 'patches') console.log(await measurePatches())
if (!only || only === 'gateway') console.log(await measureGateway(seconds))
if (!only || only === 'scale') console.log(await measureScale())
if (!only || only === 'sync') console.log(await measureSync())
if (!only || only === 'cli') console.log(await measureCli())
