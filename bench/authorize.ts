// The cost of authorizing a request: 1,000 teams, 10,000 bindings, 100,000 keys, in process, compared with an empty loop.

import { randomBytes } from 'node:crypto'
import { buildApiServer } from '../src/apiserver/build.ts'
import { makeKey } from '../src/kinds/key-format.ts'
import { OwnedAccessKey } from '../src/kinds/owned-access-key.ts'
import { ClusterRole, ClusterRoleBinding } from '../src/kinds/rbac.ts'
import { Team } from '../src/kinds/team.ts'
import { openStorage } from '../src/storage/index.ts'
import { openBenchTokens } from './machine-tokens.ts'
import type { Measured } from './measurement.ts'

const [teams, bindings, keys] = [1000, 10_000, Number(process.env['BENCH_KEYS'] ?? 100_000)]
const group = 'rbac.authorization.k8s.io'
const random = (size: number) => randomBytes(size)

export async function measureAuthorize(): Promise<Measured> {
  const storage = await openStorage({ engine: 'memory', directory: '', now: Date.now })
  const machine = await openBenchTokens()
  const apiServer = buildApiServer({
    storage,
    signIn: ({ teams, changed }) => {
      const machineTokens = machine.openTokens({ teams, changed: () => changed(() => true) })
      return { machineTokens, stop: machineTokens.stop }
    },
    keys: [{ id: 'bench', key: random(32) }],
    now: Date.now,
    failed: (_, error) => console.error(error),
  })
  await apiServer.ready
  const internalClient = apiServer.registry.internalClient
  const many = async (count: number, make: (index: number) => Promise<unknown>) => {
    for (let index = 0; index < count; index += 500)
      await Promise.all(Array.from({ length: Math.min(500, count - index) }, (_, each) => make(index + each)))
  }
  await many(teams, index =>
    internalClient.create(Team, '', {
      metadata: { name: `team-${index}` },
      spec: { users: [`user-${index}`, `user-${index + 1}`] },
    }),
  )
  await many(100, index =>
    internalClient.create(ClusterRole, '', {
      metadata: { name: `role-${index}` },
      rules: [
        {
          verbs: ['get', 'list'],
          apiGroups: ['management.platform.sh'],
          resources: ['teams', 'sharedsecrets'],
          ...(index % 2 ? {} : { resourceNames: [`team-${index}`] }),
        },
      ],
    }),
  )
  await many(bindings, index =>
    internalClient.create(ClusterRoleBinding, '', {
      metadata: { name: `binding-${index}` },
      roleRef: { apiGroup: group, kind: 'ClusterRole', name: `role-${index % 100}` },
      subjects: [
        {
          apiGroup: group,
          kind: index % 2 ? 'User' : 'Group',
          name: index % 2 ? `user-${index % teams}` : `platform:team:team-${index % teams}`,
        },
      ],
    }),
  )
  const secrets: string[] = []
  await many(keys, index => {
    const key = makeKey(random)
    if (index % 97 === 0) secrets.push(key)
    return internalClient.create(OwnedAccessKey, '', {
      metadata: { name: `key-${index}` },
      spec: { user: `user-${index % teams}`, key },
    })
  })
  await new Promise(resolve => setTimeout(resolve, 500))
  const headers = secrets.map(key => `Bearer ${key}`)
  const tokens = (await machine.tokens(secrets.length)).map(token => `Bearer ${token}`)
  for (const token of tokens) await apiServer.prepare(token)
  const target = (index: number) => ({
    group: 'management.platform.sh',
    resource: 'teams',
    namespace: '',
    name: `team-${index % 100}`,
  })
  // Warms up like a server after a minute, because the cost of a warm server matters.
  const [warming, rounds] = [60_000, 60_000]
  const took = {
    nothing: [] as number[],
    authenticate: [] as number[],
    authorize: [] as number[],
    token: [] as number[],
  }
  for (let round = -warming; round < rounds; round++) {
    const index = round + warming
    const question = { verb: 'get', target: target(index) }
    const header = headers[index % headers.length] as string
    const before = performance.now()
    const start = performance.now()
    const caller = apiServer.authenticate(header)
    const middle = performance.now()
    apiServer.authorizer.authorize(caller, question)
    const end = performance.now()
    if (round < 0) continue
    took.nothing.push((start - before) * 1000)
    took.authenticate.push((middle - start) * 1000)
    took.authorize.push((end - middle) * 1000)
  }
  // A loop of its own: digests of long tokens would displace the keys and roles from the CPU's caches.
  for (let round = -warming; round < rounds; round++) {
    const token = tokens[(round + warming) % tokens.length] as string
    const before = performance.now()
    // The first request of a connection, which has to digest the token.
    const connection = {}
    const verifying = apiServer.prepare(token, connection)
    apiServer.authenticate(token, false, connection)
    const end = performance.now()
    if (verifying) throw new Error('the token is not cached')
    if (round >= 0) took.token.push((end - before) * 1000)
  }
  apiServer.stop()
  await storage.close()
  const at = (values: number[], part: number) =>
    values.sort((one, other) => one - other)[Math.floor(values.length * part)] as number
  const told = (values: number[]) => `${at(values, 0.5).toFixed(2)} µs (99%: ${at(values, 0.99).toFixed(2)})`
  const text = `authorize        ${teams} teams, ${bindings} bindings, ${keys} keys: median ${told(took.authorize)} to authorize (wanted ≤ 3), ${told(took.authenticate)} to authenticate, ${told(took.token)} with a cached JWT (wanted ≤ 10 more); of each ${told(took.nothing)} is the timer`
  const figure = (name: string, values: number[]) => ({
    name,
    value: at(values, 0.5),
    unit: 'µs',
    bare: { name: 'timer', value: at(took.nothing, 0.5) },
    direction: 'at-most' as const,
    note: `p99 ${at(values, 0.99).toFixed(2)} µs; ${keys.toLocaleString('en')} keys`,
  })
  return {
    text,
    figures: [
      { ...figure('authorize', took.authorize), wanted: 3 },
      figure('authenticate', took.authenticate),
      { ...figure('authenticate-jwt', took.token), wanted: at(took.authenticate, 0.5) + 10 },
    ],
  }
}

if (process.argv[1]?.endsWith('authorize.ts')) console.log((await measureAuthorize()).text)
