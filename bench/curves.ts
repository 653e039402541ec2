// The CPU of one request as the store and the objects grow: with 1,000 to 100,000 objects, and with 10 to 1,000 entries in a list.

import { perEvent, perRequest } from './costs.ts'
import type { Load } from './load.ts'
import { type Figure, type Measured, number, type Point } from './measurement.ts'
import { inParallel, remove, type Server, startServer } from './processes.ts'
import { send } from './rates.ts'
import { fill } from './scale.ts'

const teams = '/kubernetes/management/apis/management.platform.sh/v1/teams'
const most = Number(process.env['BENCH_OBJECTS'] ?? 100_000)
const stores = [most / 100, most / 10, most]
const lists = [10, 100, 1000]
const objectsPerList = 500
/** Few, because concurrent writes of one object conflict, and the server repeats them. */
const connections = 8

type Costs = { readonly [request: string]: number }

export async function measureCurves(seconds: number): Promise<Measured> {
  const byStore = await costsByStore(seconds)
  const byList = await costsByList(seconds)
  // The work of a request does not depend on how many other objects there are. It grows at most with the entries.
  const figures = [
    ...curves('cost by objects', byStore, { axis: 'objects in the store', wanted: 1.5 }),
    ...curves('cost by entries', byList, { axis: 'users of a team', wanted: 100 }),
  ]
  return { text: figures.map(line).join('\n'), figures }
}

async function costsByStore(seconds: number): Promise<Map<number, Costs>> {
  const server = await startServer()
  const found = new Map<number, Costs>()
  let filled = 0
  for (const [round, size] of stores.entries()) {
    await fill(server, filled, size)
    filled = size
    const target = { among: size, name: `${teams}/team-%d`, created: `new-${round}-%d`, users: [] }
    // Warms up, so that compilation is not measured.
    if (round === 0) await costsOf(server, seconds, target)
    const costs = await costsOf(server, seconds, target)
    found.set(size, { ...costs, 'watch event': await perEvent(server, round) })
  }
  await server.stop()
  remove(server.directory)
  return found
}

async function costsByList(seconds: number): Promise<Map<number, Costs>> {
  const server = await startServer()
  const found = new Map<number, Costs>()
  for (const size of lists) {
    const users = Array.from({ length: size }, (_, at) => `user-${at}`)
    const name = `list-${size}`
    await inParallel(objectsPerList, async index => {
      await send(server, 'POST', teams, JSON.stringify({ metadata: { name: `${name}-${index}` }, spec: { users } }))
    })
    const target = { among: objectsPerList, name: `${teams}/${name}-%d`, created: `${name}-new-%d`, users }
    if (found.size === 0) await costsOf(server, seconds, target)
    found.set(size, await costsOf(server, seconds, target))
  }
  await server.stop()
  remove(server.directory)
  return found
}

type Target = {
  readonly among: number
  /** The path of an object, and the name of a new one. */
  readonly name: string
  readonly created: string
  readonly users: readonly string[]
}

async function costsOf(server: Server, seconds: number, { among, name, created, users }: Target): Promise<Costs> {
  const description = 'x'.repeat(280)
  const jobs: { readonly [request: string]: Partial<Load> } = {
    get: { path: name },
    create: {
      method: 'POST',
      path: teams,
      body: JSON.stringify({ metadata: { name: created }, spec: { description, users } }),
    },
    'merge patch': {
      method: 'PATCH',
      path: name,
      body: JSON.stringify({ spec: { displayName: 'n-%d' } }),
      type: 'application/merge-patch+json',
    },
    apply: applyTo(name, users),
  }
  const costs: { [request: string]: number } = {}
  for (const [request, load] of Object.entries(jobs))
    costs[request] = await perRequest(server, { among, connections, ...load }, seconds)
  return costs
}

const applyTo = (path: string, users: readonly string[]): Partial<Load> => ({
  method: 'PATCH',
  path: `${path}?fieldManager=bench&force=true`,
  body: JSON.stringify({
    apiVersion: 'management.platform.sh/v1',
    kind: 'Team',
    spec: { displayName: 'n-%d', ...(users.length ? { users } : {}) },
  }),
  type: 'application/apply-patch+yaml',
})

type Axis = { readonly axis: string; readonly wanted: number }

/** A figure per request: its growth from the smallest to the largest size, and the curve. */
function curves(what: string, found: ReadonlyMap<number, Costs>, { axis, wanted }: Axis): Figure[] {
  const [first = {}] = found.values()
  return Object.keys(first).map(request => {
    const points = [...found].map(([at, costs]): Point => ({ at, value: costs[request] ?? 0 }))
    const [smallest, largest] = [points[0]?.value ?? 0, points.at(-1)?.value ?? 0]
    const sizes = points.map(({ at, value }) => `${number(at)}: ${number(value)} µs`).join(', ')
    return {
      name: `${what}: ${request}`,
      value: largest / smallest,
      unit: 'times the CPU',
      curve: { axis, unit: 'µs', points },
      wanted,
      direction: 'at-most' as const,
      note: sizes,
    }
  })
}

const line = ({ name, value, note }: Figure) => `${name.padEnd(28)} ${value.toFixed(2)} times; ${note}`
