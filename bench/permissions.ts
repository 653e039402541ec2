// The cost of permissions for a get: one of very many permissions, compared with an administrator of a server without them.

import { Agent, request } from 'node:https'
import { drive } from './load.ts'
import { type Measured, median as medianOf } from './measurement.ts'
import { remove, type Server, startServer } from './processes.ts'

const base = '/kubernetes/management/apis'
const teams = `${base}/management.platform.sh/v1/teams`
const rbac = `${base}/rbac.authorization.k8s.io/v1`
const keys = `${base}/management.platform.sh/v1/ownedaccesskeys`
const api = 'rbac.authorization.k8s.io'
const count = { teams: 1000, bindings: 10_000, keys: Number(process.env['BENCH_KEYS'] ?? 100_000) }
const memory = ['--storage', 'memory']
const agent = new Agent({ keepAlive: true, maxSockets: 64, rejectUnauthorized: false })

function post(server: Server, path: string, body: object): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { Authorization: `Bearer ${server.key}`, 'Content-Type': 'application/json' }
    const sent = request(server.url + path, { method: 'POST', agent, headers }, response => {
      let text = ''
      response.setEncoding('utf8').on('data', chunk => {
        text += chunk
      })
      response.on('end', () => (response.statusCode === 201 ? resolve(text) : reject(new Error(text))))
    })
    sent.on('error', reject).end(JSON.stringify(body))
  })
}

async function many(size: number, make: (index: number) => Promise<unknown>): Promise<void> {
  let next = 0
  const lane = async () => {
    while (next < size) await make(next++)
  }
  await Promise.all(Array.from({ length: 64 }, lane))
}

const makeTeams = (server: Server) =>
  many(count.teams, index =>
    post(server, teams, {
      metadata: { name: `team-${index}` },
      spec: { description: 'x'.repeat(500), users: [`user-${index}`, `user-${index + 1}`] },
    }),
  )

/** Everybody may get teams through a binding of their own team's group. Returns the key of one user. */
async function fill(server: Server): Promise<string> {
  await post(server, `${rbac}/clusterroles`, {
    metadata: { name: 'reader' },
    rules: [{ verbs: ['get'], apiGroups: ['management.platform.sh'], resources: ['teams'] }],
  })
  await many(count.bindings, index =>
    post(server, `${rbac}/clusterrolebindings`, {
      metadata: { name: `binding-${index}` },
      roleRef: { apiGroup: api, kind: 'ClusterRole', name: 'reader' },
      subjects: [{ apiGroup: api, kind: 'Group', name: `platform:team:team-${index % count.teams}` }],
    }),
  )
  await many(count.keys - 1, index => post(server, keys, { spec: { user: `user-${index % count.teams}` } }))
  return JSON.parse(await post(server, keys, { spec: { user: 'user-500' } })).spec.key
}

export async function measureRights(seconds: number): Promise<Measured> {
  const [plain, full] = [await startServer(undefined, memory), await startServer(undefined, memory)]
  await Promise.all([makeTeams(plain), makeTeams(full)])
  const member = await fill(full)
  const load = { path: `${teams}/team-%d`, connections: 32, seconds }
  const runs = [
    { url: plain.url, key: plain.key, rates: [] as number[] },
    { url: full.url, key: full.key, rates: [] as number[] },
    { url: full.url, key: member, rates: [] as number[] },
  ] as const
  // Alternates, so that other load on the machine affects all alike. The first round is a warm-up.
  for (let round = 0; round < 6; round++)
    for (const { url, key, rates } of runs) {
      const { perSecond, errors } = await drive({ ...load, url, key })
      if (errors) throw new Error(`${errors} errors`)
      if (round > 0) rates.push(perSecond)
    }
  await Promise.all([plain.stop(), full.stop()])
  for (const { directory } of [plain, full]) remove(directory)
  const median = ({ rates }: (typeof runs)[number]) => medianOf(rates)
  const [without, administrator, one] = [median(runs[0]), median(runs[1]), median(runs[2])]
  const told = (rate: number) => `${Math.round(rate)}/s`
  const text = `rights           ${count.teams} teams, ${count.bindings} bindings, ${count.keys} keys: get by one of many ${told(one)}, by the administrator ${told(administrator)}, by the administrator of a server without them ${told(without)}: ratios ${(one / administrator).toFixed(2)}, ${(one / without).toFixed(2)} (wanted ≥ 0.95)`
  const figure = (of: string, rate: number) => ({
    name: `rights, ${count.keys.toLocaleString('en')} keys: of ${of}`,
    value: one / rate,
    unit: 'of the rate',
    bare: { name: of, value: 1 },
    wanted: 0.95,
    direction: 'at-least' as const,
    note: `${told(one)} against ${told(rate)}`,
  })
  return { text, figures: [figure('the administrator', administrator), figure('a server without', without)] }
}
