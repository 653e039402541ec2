// Stands in for etcd and kube-apiserver where the real ones cannot be had: takes their documented flags and no others, wants
// what they want of files and addresses, and serves what the suites need. Started by kube-cluster.test.ts: ROLE FLAGS…

import { createPrivateKey } from 'node:crypto'
import { mkdirSync, readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { isIP } from 'node:net'
import { text } from 'node:stream/consumers'
import { prefix } from '../../src/api/paths.ts'
import { issueCertificate, makeAuthority } from '../../src/serving/certificate.ts'
import { clusterKinds } from '../../src/vcluster/kinds.ts'
import { openFront, openHouse } from './in-process.ts'

/** Of the reference pages of the two, as much as anybody needs here. */
const documented: { readonly [role: string]: readonly string[] } = {
  etcd: [
    ...['name', 'data-dir', 'listen-client-urls', 'advertise-client-urls', 'listen-peer-urls', 'log-level'],
    ...['initial-advertise-peer-urls', 'initial-cluster', 'initial-cluster-state', 'unsafe-no-fsync'],
  ],
  apiserver: [
    ...['etcd-servers', 'bind-address', 'advertise-address', 'secure-port', 'cert-dir', 'token-auth-file'],
    ...['authorization-mode', 'service-account-key-file', 'service-account-signing-key-file'],
    ...['service-account-issuer', 'service-cluster-ip-range', 'disable-admission-plugins', 'endpoint-reconciler-type'],
    ...['enable-admission-plugins', 'client-ca-file', 'tls-cert-file', 'tls-private-key-file', 'allow-privileged', 'v'],
  ],
}

const [, , role = '', ...args] = process.argv
const flags = new Map(args.map(readFlag))
await (role === 'etcd' ? etcd() : apiserver())

function readFlag(text: string): [string, string] {
  const [, name = '', value = ''] = /^--([a-z-]+)=(.*)$/s.exec(text) ?? refuse(`${text} is no flag`)
  if (!documented[role]?.includes(name)) refuse(`unknown flag: --${name}`)
  return [name, value]
}

function refuse(why: string): never {
  console.error(`${role}: ${why}`)
  process.exit(1)
}

function flag(name: string): string {
  return flags.get(name) ?? refuse(`--${name} must be set`)
}

async function etcd(): Promise<void> {
  mkdirSync(flag('data-dir'), { recursive: true })
  const [cluster, name] = [flag('initial-cluster'), flags.get('name') ?? 'default']
  if (cluster !== `${name}=${flag('initial-advertise-peer-urls')}`)
    refuse(`--initial-cluster has ${cluster}, and must have ${name} with --initial-advertise-peer-urls`)
  if (flag('listen-client-urls') !== flag('advertise-client-urls')) refuse('clients would be sent elsewhere')
  const { port, hostname } = new URL(flag('listen-client-urls'))
  createServer((_, response) => response.end('{"health":"true"}')).listen(Number(port), hostname)
}

async function apiserver(): Promise<void> {
  // Without one it looks for the machine's own, and there is none where only loopback is.
  if (!isIP(flag('advertise-address'))) refuse('--advertise-address must be an address')
  if (!/^\d+\.\d+\.\d+\.\d+\/\d+$/.test(flag('service-cluster-ip-range'))) refuse('--service-cluster-ip-range')
  if (new URL(flag('service-account-issuer')).protocol !== 'https:') refuse('--service-account-issuer must be https')
  for (const name of ['service-account-key-file', 'service-account-signing-key-file'])
    if (createPrivateKey(readFileSync(flag(name))).asymmetricKeyType !== 'rsa') refuse(`--${name} is no key`)
  const [token = '', user, uid, groups] = readFileSync(flag('token-auth-file'), 'utf8').trim().split(',')
  if (!token || !user || !uid || !groups) refuse('--token-auth-file needs token, user, uid and groups')
  if (flag('authorization-mode') !== 'AlwaysAllow') refuse('nobody here has rights')
  mkdirSync(flag('cert-dir'), { recursive: true })
  while (!(await fetch(flag('etcd-servers')).catch(() => undefined))?.ok) await new Promise(setImmediate)

  const house = await openHouse({ kinds: clusterKinds, clock: { now: Date.now, forward: () => {} } })
  const front = await openFront(house)
  const namespaces = new Set(['default', 'kube-system'])
  const now = Date.now()
  const { certificate, key } = issueCertificate(makeAuthority(now), ['127.0.0.1'], now)
  const serve = async (asked: IncomingMessage, response: ServerResponse) => {
    const { url = '', method = '', headers } = asked
    const answer = (code: number, body: object) =>
      response.writeHead(code, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
    const status = (code: number, reason: string, message = '') =>
      answer(code, { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message })
    if (headers.authorization !== `Bearer ${token}`) return status(401, 'Unauthorized')
    if (url === '/api/v1/namespaces' && method === 'POST') {
      const body = JSON.parse(await text(asked)) as { readonly metadata: { readonly name: string } }
      const isNew = !namespaces.has(body.metadata.name)
      namespaces.add(body.metadata.name)
      return isNew ? answer(201, body) : status(409, 'AlreadyExists')
    }
    const namespace = /\/namespaces\/([^/?]+)\//.exec(`${url}/`)?.[1]
    if (method === 'POST' && namespace && !namespaces.has(namespace))
      return status(404, 'NotFound', `namespaces "${namespace}" not found`)
    const passed = request(`${front.url}${prefix}${url}`, { method, headers }, got => {
      response.writeHead(got.statusCode ?? 500, got.headers)
      response.flushHeaders()
      got.pipe(response)
    })
    passed.on('error', () => response.destroy())
    response.on('close', () => passed.destroy())
    return asked.pipe(passed)
  }
  const server = createTlsServer({ cert: certificate, key }, (asked, response) => void serve(asked, response))
  server.listen(Number(flag('secure-port')), flag('bind-address'))
}
