// A hundred thousand objects, ten thousand keys, a thousand teams: cold start, first page, selective list, and authentication by key.

import { startServer } from '../support/server.ts'
import { inLanes, type Latencies, openLatencies } from './latencies.ts'
import { type LeanClient, openLeanClient } from './lean-client.ts'
import { teams } from './observed-teams.ts'
import { vitalsOf } from './process-health.ts'

const lanes = 64
const myself = '/kubernetes/management/apis/authentication.k8s.io/v1/selfsubjectreviews'
const keys = teams.replace('/teams', '/ownedaccesskeys')

export type Many = {
  readonly objects: number
  /** In seconds. */
  readonly coldStart: number
  /** In milliseconds. */
  readonly firstPage: number
  readonly selected: number
  /** In bytes. */
  readonly resident: number
  readonly errors: number
}

export async function runMany(objects: number): Promise<Many> {
  const server = await startServer({ storage: 'sqlite', args: ['--audit-log', 'off'] })
  try {
    const clients = openClients({ url: server.http, key: server.adminKey })
    let errors = 0
    await inLanes(lanes, objects, async (index, lane) => {
      const labels = `{"half":"${index % 2}","few":"${index % (objects / 10)}"}`
      const body = `{"metadata":{"name":"team-${index}","labels":${labels}},"spec":{"description":"${'x'.repeat(280)}"}}`
      if ((await clients[lane]?.ask('POST', teams, body))?.code !== 201) errors++
    })
    for (const client of clients) client.close()
    const started = performance.now()
    await server.crash({})
    const coldStart = (performance.now() - started) / 1000
    const client = openLeanClient({ url: server.http, key: server.adminKey })
    const [firstPage, selected] = [
      await medianOf(client, `${teams}?limit=500`),
      await medianOf(client, `${teams}?labelSelector=few%3D7`),
    ]
    client.close()
    return { objects, coldStart, firstPage, selected, resident: (await vitalsOf(server)).resident(), errors }
  } finally {
    await server.kill()
  }
}

export type Keys = { readonly keys: number; readonly teams: number; readonly gets: Latencies; readonly errors: number }

/** Every user sends a self review with their own key. */
export async function runKeys(count: { readonly keys: number; readonly teams: number }): Promise<Keys> {
  const server = await startServer({ storage: 'sqlite', args: ['--audit-log', 'off'] })
  const to = { url: server.http, key: server.adminKey }
  try {
    const clients = openClients(to)
    const secrets: string[] = []
    let errors = 0
    await inLanes(lanes, count.teams, async (index, lane) => {
      const body = `{"metadata":{"name":"team-${index}"},"spec":{"users":["user-${index}","user-${index + 1}"]}}`
      if ((await clients[lane]?.ask('POST', teams, body))?.code !== 201) errors++
    })
    await inLanes(lanes, count.keys, async (index, lane) => {
      const answer = await clients[lane]?.ask('POST', keys, `{"spec":{"user":"user-${index % count.teams}"}}`)
      if (answer?.code === 201) secrets.push((JSON.parse(answer.text) as { spec: { key: string } }).spec.key)
      else errors++
    })
    for (const client of clients) client.close()
    const gets = openLatencies()
    for (const key of secrets.filter((_, index) => index % 10 === 0)) {
      const client = openLeanClient({ url: server.http, key })
      await client.ask('GET', '/livez') // the connection is opened before the measurement
      const started = performance.now()
      const { code } = await client.ask('POST', myself, '{}')
      gets.add(performance.now() - started)
      if (code !== 201) errors++
      client.close()
    }
    return { ...count, gets, errors }
  } finally {
    await server.kill()
  }
}

const openClients = (to: { url: string; key: string }): LeanClient[] =>
  Array.from({ length: lanes }, () => openLeanClient(to))

async function medianOf(client: LeanClient, path: string): Promise<number> {
  const took = openLatencies()
  for (let times = 0; times < 21; times++) {
    const started = performance.now()
    await client.ask('GET', path)
    took.add(performance.now() - started)
  }
  return took.at(0.5)
}
