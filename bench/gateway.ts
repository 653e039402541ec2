// What a gateway costs: a get through it against the same get direct, the delay it adds, a thousand watches, a token it knows. run.ts calls it.

import { spawn } from 'node:child_process'
import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { Agent, get, request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type CryptoKey, importJWK, type JWK, SignJWT } from 'jose'
import { openCredentials } from '../src/gateway/credentials.ts'
import { openKeySet } from '../src/gateway/key-set.ts'
import type { Request } from '../src/serving/exchange.ts'
import { drive } from './load.ts'
import { remove, type Server, startServer } from './processes.ts'

const ours = '/apis/management.platform.sh/v1'
const rounds = 3
const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] as number

export async function measureGateway(seconds: number): Promise<string> {
  const server = await startServer()
  const { url, pid, stop, directory } = await startGateway(server)
  const { token } = (await send(server, `${ours}/directclusterendpointtokens`, { spec: {} })).status
  await send(server, `${ours}/teams`, { metadata: { name: 'one' }, spec: { description: 'x'.repeat(500) } })
  const direct = {
    url: server.url,
    key: server.key,
    path: `/kubernetes/management${ours}/teams/one`,
    // The same get: as somebody else, as the gateway asks it.
    headers: { 'Impersonate-User': 'admin', 'Impersonate-Group': 'system:authenticated,platform:user:admin' },
  }
  const through = { url, key: token as string, path: `/kubernetes/cluster/prod${ours}/teams/one` }
  const before = memoryOf(pid)
  const watches = await hold({ ...through, path: `/kubernetes/cluster/prod${ours}/teams?watch=true` }, 1000)
  const held = memoryOf(pid)
  for (const end of watches) end()
  const rates = { direct: [] as number[], through: [] as number[], ratio: [] as number[] }
  const cpu = { server: [] as number[], gateway: [] as number[] }
  let errors = 0
  for (let round = 0; round < rounds; round++) {
    const one = await drive({ ...direct, connections: 32, seconds })
    const [before, serverBefore] = [cpuOf(pid), cpuOf(server.pid)]
    const other = await drive({ ...through, connections: 32, seconds })
    const each = (milliseconds: number) => (milliseconds * 1000) / (other.perSecond * seconds)
    cpu.gateway.push(each(cpuOf(pid) - before))
    cpu.server.push(each(cpuOf(server.pid) - serverBefore))
    rates.direct.push(one.perSecond)
    rates.through.push(other.perSecond)
    rates.ratio.push(other.perSecond / one.perSecond)
    errors += other.errors
  }
  const delays = { direct: [] as number[], through: [] as number[], added: [] as number[] }
  for (let round = 0; round < rounds; round++) {
    const [one, other] = [await delay(direct, seconds), await delay(through, seconds)]
    delays.direct.push(one)
    delays.through.push(other)
    delays.added.push(other - one)
  }
  const known: number[] = []
  for (let round = 0; round < rounds; round++) known.push(await knownToken())
  await stop()
  await server.stop()
  remove(directory)
  remove(server.directory)
  const whole = (values: readonly number[]) => Math.round(median(values)).toString()
  return [
    `gateway get      ${whole(rates.through).padStart(7)}/s   direct ${whole(rates.direct).padStart(7)}/s   ratio ${median(rates.ratio).toFixed(2)} (wanted 0.5)${errors ? `   ${errors} errors` : ''}`,
    `gateway cpu      ${whole(cpu.gateway)} µs a get, the server behind it ${whole(cpu.server)} µs`,
    `gateway delay    p99 added at 500/s ${median(delays.added).toFixed(2)} ms (direct ${median(delays.direct).toFixed(2)}, through ${median(delays.through).toFixed(2)}; wanted 3)`,
    `gateway watches  1,000 held in ${Math.round(held)} MB (${Math.round(before)} before them; wanted 150)`,
    `gateway token    one that is known costs ${median(known).toFixed(2)} µs (wanted 5)`,
  ].join('\n')
}

/** Milliseconds of CPU time that a process has used: says more than a rate where others use the machine, too. */
function cpuOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * 10
}

async function startGateway(server: Server) {
  const directory = mkdtempSync(join(tmpdir(), 'platform-bench-gateway-'))
  const put = (name: string, text: string) => writeFileSync(join(directory, name), text)
  const made = await send(server, `${ours}/ownedaccesskeys`, {
    spec: { user: 'admin', scope: { roles: [{ role: 'agent' }] } },
  })
  put('agent.key', made.spec.key)
  put('ca.crt', readFileSync(join(server.directory, 'ca.crt'), 'utf8'))
  put(
    'gateway.yaml',
    JSON.stringify({
      apiVersion: 'config.platform.sh/v1',
      kind: 'GatewayConfig',
      listen: '127.0.0.1:0',
      tls: { directory: 'tls' },
      issuer: { url: server.url, ca: 'ca.crt' },
      service: { keyFile: 'agent.key' },
      identity: { userPrefix: '' },
      limits: { reads: 5000, share: 100 },
      audit: { log: 'off' },
      clusters: [{ name: 'prod', kubeconfig: join(server.directory, 'admin.kubeconfig') }],
    }),
  )
  const program = new URL('../bin/platform.js', import.meta.url).pathname
  const child = spawn(process.execPath, [program, 'gateway', '--config', join(directory, 'gateway.yaml')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const url = await new Promise<string>(resolve => {
    let text = ''
    child.stdout.on('data', chunk => {
      text += chunk
      const found = /ready: (\S+)/.exec(text)
      if (found) resolve(found[1] as string)
    })
  })
  const stop = () =>
    new Promise<void>(resolve => {
      child.on('exit', () => resolve())
      child.kill('SIGTERM')
    })
  return { url, directory, stop, pid: childOf(child.pid as number) }
}

/** bin/platform.js may have started another Node. */
function childOf(pid: number): number {
  const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')
  return child ? Number(child) : pid
}

// biome-ignore lint/suspicious/noExplicitAny: whatever came
function send(server: Server, path: string, body: object): Promise<any> {
  return new Promise((resolve, reject) => {
    const headers = { Authorization: `Bearer ${server.key}`, 'Content-Type': 'application/json' }
    const options = { method: 'POST', rejectUnauthorized: false, headers }
    const sent = request(`${server.url}/kubernetes/management${path}`, options, response => {
      let text = ''
      response.setEncoding('utf8').on('data', chunk => {
        text += chunk
      })
      response.on('end', () => resolve(JSON.parse(text)))
    })
    sent.on('error', reject).end(JSON.stringify(body))
  })
}

type At = {
  readonly url: string
  readonly key: string
  readonly path: string
  readonly headers?: { readonly [name: string]: string }
}

/** The 99th percentile at 500 requests a second, in milliseconds. */
async function delay({ url, key, path, headers: more = {} }: At, seconds: number): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: 32, rejectUnauthorized: false })
  const headers = { Authorization: `Bearer ${key}`, ...more }
  const times: number[] = []
  const one = () =>
    new Promise<void>(resolve => {
      const began = performance.now()
      get(url + path, { agent, headers }, response => {
        response.resume().on('end', () => {
          times.push(performance.now() - began)
          resolve()
        })
      }).on('error', () => resolve())
    })
  await Promise.all(Array.from({ length: 32 }, one))
  times.length = 0
  const under: Promise<void>[] = []
  const began = performance.now()
  for (let count = 0; count < seconds * 500; ) {
    const due = Math.floor((performance.now() - began) / 2)
    for (; count < due && count < seconds * 500; count++) under.push(one())
    await new Promise(resolve => setTimeout(resolve, 1))
  }
  await Promise.all(under)
  agent.destroy()
  return times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.99)] as number
}

async function hold({ url, key, path }: At, count: number): Promise<(() => void)[]> {
  const headers = { Authorization: `Bearer ${key}` }
  const open = () =>
    new Promise<() => void>((resolve, reject) => {
      const sent = get(url + path, { agent: false, headers, rejectUnauthorized: false }, response => {
        if (response.statusCode !== 200) reject(new Error(`a watch was answered ${response.statusCode}`))
        response.resume().on('error', () => {})
        resolve(() => sent.destroy())
      })
      sent.on('error', reject)
    })
  const all: (() => void)[] = []
  for (let at = 0; at < count; at += 50) all.push(...(await Promise.all(Array.from({ length: 50 }, open))))
  return all
}

const memoryOf = (pid: number) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024

async function knownToken(): Promise<number> {
  const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const jwk = { ...pair.publicKey.export({ format: 'jwk' }), kid: 'a' }
  const keySet = openKeySet({ fetch: async () => ({ keys: [jwk] }) as never, now: Date.now, failed: () => {} })
  const credentials = openCredentials({
    issuer: () => 'https://a',
    keySet,
    review: async () => undefined,
    order: () => 0,
    addressOf: () => '',
    now: Date.now,
  })
  const iat = Math.floor(Date.now() / 1000)
  const holder = { kind: 'User', name: 'ada', key: randomUUID(), scope: { clusters: [{ cluster: 'prod' }] } }
  const claims = {
    iss: 'https://a',
    aud: ['platform:direct-cluster-endpoint'],
    sub: 'ada',
    groups: ['platform:user:ada'],
    iat,
    nbf: iat,
    exp: iat + 600,
    jti: randomUUID(),
    'platform.sh': holder,
  }
  const key = (await importJWK(pair.privateKey.export({ format: 'jwk' }) as JWK, 'ES256')) as CryptoKey
  const token = await new SignJWT(claims).setProtectedHeader({ alg: 'ES256', typ: 'JWT', kid: 'a' }).sign(key)
  const asked = {
    headers: { authorization: `Bearer ${token}` },
    rawHeaders: ['Authorization', `Bearer ${token}`],
  } as unknown as Request
  await credentials.principalOf(asked)
  const rounds = 200_000
  for (let count = 0; count < rounds / 10; count++) void credentials.principalOf(asked)
  const began = performance.now()
  for (let count = 0; count < rounds; count++) void credentials.principalOf(asked)
  const taken = ((performance.now() - began) * 1000) / rounds
  keySet.stop()
  return taken
}
