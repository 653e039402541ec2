// Gets, pages, creates and patches per second, compared with a bare node:https server that returns as many bytes. run.ts calls it.

import { request } from 'node:https'
import { driveMeasured, type Load } from './load.ts'
import { type Measured, median } from './measurement.ts'
import { type Running, remove, residentOf, type Server, startBare, startServer } from './processes.ts'

const teams = '/kubernetes/management/apis/management.platform.sh/v1/teams'
export const rounds = 3
/** Megabytes of the server after all jobs. */
const mostMemory = 260

const padding = 'x'.repeat(500)
const team = (name: string) =>
  JSON.stringify({ metadata: { name, labels: { app: name } }, spec: { description: padding, users: ['ada'] } })

type Job = {
  readonly name: string
  readonly target: number
  readonly bytes: 'one' | 'page'
  readonly connections: number
  readonly load: Partial<Load> & { readonly path: string }
}

const patch = {
  method: 'PATCH',
  path: `${teams}/team-%d`,
  body: JSON.stringify({ spec: { displayName: 'n-%d' } }),
  type: 'application/merge-patch+json',
}
const apply = {
  method: 'PATCH',
  path: `${teams}/team-%d?fieldManager=bench&force=true`,
  body: JSON.stringify({
    apiVersion: 'management.platform.sh/v1',
    kind: 'Team',
    spec: { displayName: 'n-%d', description: padding, users: ['ada'] },
  }),
  type: 'application/apply-patch+yaml',
}
const create = { method: 'POST', path: teams, body: team('bench-%d') }

export const jobs: readonly Job[] = [
  { name: 'get one', target: 0.7, bytes: 'one', connections: 32, load: { path: `${teams}/team-%d` } },
  { name: 'page of 500', target: 0.7, bytes: 'page', connections: 8, load: { path: `${teams}?limit=500` } },
  { name: 'durable create', target: 0.4, bytes: 'one', connections: 64, load: create },
  { name: 'patch', target: 0.4, bytes: 'one', connections: 64, load: patch },
  { name: 'apply', target: 0.3, bytes: 'one', connections: 64, load: apply },
]
export const rateNames = jobs.map(({ name }) => name)

/** Creates the objects that the jobs use. */
export async function prepare(server: Server): Promise<void> {
  for (let index = 0; index < 1000; index++) await send(server, 'POST', teams, team(`team-${index}`))
}

/** The jobs whose name contains the word; without a word, all. */
export async function measureRates(seconds: number, word = ''): Promise<Measured> {
  const server = await startServer()
  await prepare(server)
  const one = await send(server, 'GET', `${teams}/team-1`)
  const page = await send(server, 'GET', `${teams}?limit=500`)
  const bare = { one: await startBare(one.length), page: await startBare(page.length) }
  const rows: Row[] = []
  for (const job of jobs.filter(({ name }) => name.includes(word))) {
    const ours = { ...job.load, key: server.key, seconds, connections: job.connections, url: server.url }
    rows.push(await compare(job, [server, ours], [bare[job.bytes], { ...ours, url: bare[job.bytes].url }]))
  }
  const memory = residentOf(server.pid) / 1e6
  await Promise.all([server.stop(), bare.one.stop(), bare.page.stop()])
  remove(server.directory)
  const text = rows.map(line).join('\n')
  // Memory depends on the load, so that of a part says little.
  if (rows.length < jobs.length) return { text, figures: rows.map(figure) }
  return {
    text: `${text}\nmemory           ${Math.round(memory)} MB resident after this load (wanted ${mostMemory})`,
    figures: [
      ...rows.map(figure),
      { name: 'memory after the load', value: memory, unit: 'MB', wanted: mostMemory, direction: 'at-most' },
    ],
  }
}

/** `cpu`: microseconds of each request. */
type Result = { readonly perSecond: number; readonly cpu: number }
type Row = Pick<Job, 'name' | 'target'> & { readonly ours: Result; readonly bare: Result; readonly errors: number }
type Loaded = readonly [Running, Load]

/** Alternates, so that other load on the machine affects both alike. */
async function compare({ name, target }: Job, ours: Loaded, bare: Loaded): Promise<Row> {
  const results = { ours: [] as Result[], bare: [] as Result[] }
  let errors = 0
  for (let round = 0; round < rounds; round++) {
    results.bare.push(await driveMeasured(bare[0].pid, bare[1]))
    const rate = await driveMeasured(ours[0].pid, ours[1])
    results.ours.push(rate)
    errors += rate.errors
  }
  return { name, ours: middle(results.ours), bare: middle(results.bare), target, errors }
}

const middle = (results: readonly Result[]): Result => ({
  perSecond: median(results.map(({ perSecond }) => perSecond)),
  cpu: median(results.map(({ cpu }) => cpu)),
})

const told = ({ perSecond, cpu }: Result) =>
  `${Math.round(perSecond).toString().padStart(7)}/s ${Math.round(cpu).toString().padStart(5)} µs`

const line = ({ name, ours, bare, target, errors }: Row) =>
  `${name.padEnd(16)} ${told(ours)}   bare ${told(bare)}   ratio ${(ours.perSecond / bare.perSecond).toFixed(2)} (wanted ${target})${errors ? `   ${errors} errors` : ''}`

const figure = ({ name, ours, bare, target, errors }: Row) => ({
  name,
  value: ours.perSecond / bare.perSecond,
  unit: 'of bare',
  bare: { name: 'bare', value: 1 },
  wanted: target,
  direction: 'at-least' as const,
  note: `${Math.round(ours.perSecond)}/s, bare ${Math.round(bare.perSecond)}/s; CPU ${Math.round(ours.cpu)} µs, bare ${Math.round(bare.cpu)} µs${errors ? `; ${errors} errors` : ''}`,
})

export function send(server: Server, method: string, path: string, body?: string): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const headers = { Authorization: `Bearer ${server.key}`, ...(body ? { 'Content-Type': 'application/json' } : {}) }
    const sent = request(server.url + path, { method, rejectUnauthorized: false, headers }, response => {
      const chunks: Buffer[] = []
      response.on('data', chunk => chunks.push(chunk)).on('end', () => resolve(Buffer.concat(chunks)))
    })
    sent.on('error', reject).end(body)
  })
}
