// Gets, pages, creates and patches per second, compared with a bare node:https server that returns as many bytes. run.ts calls it.

import { request } from 'node:https'
import { drive, type Load } from './load.ts'
import { type Measured, median } from './measurement.ts'
import { remove, type Server, startBare, startServer } from './processes.ts'

const teams = '/kubernetes/management/apis/management.platform.sh/v1/teams'
export const rounds = 3

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
const create = { method: 'POST', path: teams, body: team('bench-%d') }

const jobs: readonly Job[] = [
  { name: 'get one', target: 0.6, bytes: 'one', connections: 32, load: { path: `${teams}/team-%d` } },
  { name: 'page of 500', target: 0.7, bytes: 'page', connections: 8, load: { path: `${teams}?limit=500` } },
  { name: 'durable create', target: 0.25, bytes: 'one', connections: 64, load: create },
  { name: 'patch', target: 0.2, bytes: 'one', connections: 64, load: patch },
]
export const rateNames = jobs.map(({ name }) => name)

/** The jobs whose name contains the word; without a word, all. */
export async function measureRates(seconds: number, word = ''): Promise<Measured> {
  const server = await startServer()
  for (let index = 0; index < 1000; index++) await send(server, 'POST', teams, team(`team-${index}`))
  const one = await send(server, 'GET', `${teams}/team-1`)
  const page = await send(server, 'GET', `${teams}?limit=500`)
  const bare = { one: await startBare(one.length), page: await startBare(page.length) }
  const rows: Row[] = []
  for (const job of jobs.filter(({ name }) => name.includes(word))) {
    const ours = { ...job.load, key: server.key, seconds, connections: job.connections, url: server.url }
    rows.push(await compare(job, ours, { ...ours, url: bare[job.bytes].url }))
  }
  await Promise.all([server.stop(), bare.one.stop(), bare.page.stop()])
  remove(server.directory)
  return { text: rows.map(line).join('\n'), figures: rows.map(figure) }
}

type Row = Pick<Job, 'name' | 'target'> & { readonly ours: number; readonly bare: number; readonly errors: number }

/** Alternates, so that other load on the machine affects both alike. */
async function compare({ name, target }: Job, ours: Load, bare: Load): Promise<Row> {
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

const line = ({ name, ours, bare, target, errors }: Row) =>
  `${name.padEnd(16)} ${Math.round(ours).toString().padStart(7)}/s   bare ${Math.round(bare).toString().padStart(7)}/s   ratio ${(ours / bare).toFixed(2)} (wanted ${target})${errors ? `   ${errors} errors` : ''}`

const figure = ({ name, ours, bare, target, errors }: Row) => ({
  name,
  value: ours / bare,
  unit: 'of bare',
  bare: { name: 'bare', value: 1 },
  wanted: target,
  direction: 'at-least' as const,
  note: `${Math.round(ours)}/s, bare ${Math.round(bare)}/s${errors ? `, ${errors} errors` : ''}`,
})

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
