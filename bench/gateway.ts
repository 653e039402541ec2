// The cost of a gateway: a get through it compared with a direct get, added latency, a thousand watches, a cached token. run.ts calls it.

import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type CryptoKey, importJWK, type JWK, SignJWT } from 'jose'
import { openCredentials } from '../src/gateway/auth/authenticator.ts'
import { openKeySet } from '../src/gateway/auth/jwks.ts'
import type { Request } from '../src/serving/exchange.ts'
import { build } from './built-package.ts'
import { measureDelay } from './gateway-delay.ts'
import { ours, send, startGateway } from './gateway-process.ts'
import { measureWatches } from './gateway-watches.ts'
import { drive } from './load.ts'
import { type Figure, type Measured, median } from './measurement.ts'
import { cpuOf, remove, startServer } from './processes.ts'

const rounds = 3
const caIn = (directory: string) => readFileSync(join(directory, 'ca.crt'), 'utf8')

export async function measureGateway(seconds: number): Promise<Measured> {
  const [built, server] = [build(['jose', 'pino', 'typebox', 'undici', 'yaml']), await startServer()]
  const { token } = (await send(server, `${ours}/directclusterendpointtokens`, { spec: {} })).status
  await send(server, `${ours}/teams`, { metadata: { name: 'one' }, spec: { description: 'x'.repeat(500) } })
  const direct = {
    url: server.url,
    key: server.key,
    ca: caIn(server.directory),
    path: `/kubernetes/management${ours}/teams/one`,
    // The same get with impersonation, as the gateway sends it.
    headers: { 'Impersonate-User': 'admin', 'Impersonate-Group': 'system:authenticated,platform:user:admin' },
  }
  const watches = await measureWatches(server, built, token as string)
  const { url, pid, stop, directory } = await startGateway(server, built)
  const through = {
    url,
    key: token as string,
    ca: caIn(join(directory, 'tls')),
    path: `/kubernetes/cluster/prod${ours}/teams/one`,
  }
  const delays = await measureDelay(direct, through, seconds)
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
  const known: number[] = []
  for (let round = 0; round < rounds; round++) known.push(await knownToken())
  await stop()
  await server.stop()
  for (const one of [directory, server.directory, built]) remove(one)
  const whole = (values: readonly number[]) => Math.round(median(values)).toString()
  const text = [
    `gateway get      ${whole(rates.through).padStart(7)}/s   direct ${whole(rates.direct).padStart(7)}/s   ratio ${median(rates.ratio).toFixed(2)} (wanted 0.4)${errors ? `   ${errors} errors` : ''}`,
    `gateway cpu      ${whole(cpu.gateway)} µs a get, the server behind it ${whole(cpu.server)} µs`,
    `gateway delay    p99 added at 500/s ${delays.added.toFixed(2)} ms (direct ${delays.direct.toFixed(2)}, through ${delays.through.toFixed(2)}; wanted 3)`,
    `gateway watches  1,000 held in ${Math.round(watches.alone)} MB, in ${Math.round(watches.together)} MB by clients of HTTP/2 (${Math.round(watches.before)} before them; wanted 250)`,
    `gateway token    one that is known costs ${median(known).toFixed(2)} µs (wanted 5)`,
  ].join('\n')
  const get = `${whole(rates.through)}/s, direct ${whole(rates.direct)}/s${errors ? `, ${errors} errors` : ''}`
  const delayed = `direct ${delays.direct.toFixed(2)} ms, through ${delays.through.toFixed(2)} ms`
  const held = `${Math.round(watches.before)} MB before them; ${Math.round(watches.together)} MB by clients of HTTP/2`
  const most = (name: string, value: number, unit: string, note = ''): Figure => ({
    name: `gateway: ${name}`,
    ...{ value, unit, direction: 'at-most', ...(note ? { note } : {}) },
  })
  return {
    text,
    figures: [
      {
        name: 'gateway: get',
        ...{ value: median(rates.ratio), unit: 'of direct', bare: { name: 'direct', value: 1 } },
        ...{ wanted: 0.4, direction: 'at-least', note: get },
      },
      { ...most('cpu', median(cpu.gateway), 'µs a get'), bare: { name: 'server', value: median(cpu.server) } },
      { ...most('delay', delays.added, 'ms added, p99', delayed), wanted: 3 },
      { ...most('watches', watches.alone, 'MB', held), wanted: 250 },
      { ...most('token', median(known), 'µs'), wanted: 5 },
    ],
  }
}

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
