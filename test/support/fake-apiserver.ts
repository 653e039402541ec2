// The API server of fake-kube.ts: requires the flags of a real one, and serves the syncer's kinds with data from etcd.

import { createPrivateKey } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { type IncomingMessage, type ServerResponse, request as send } from 'node:http'
import { createServer } from 'node:https'
import { isIP } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { prefix } from '../../src/api/paths.ts'
import { buildApiServer, openFront } from './in-process.ts'
import { kubeKinds, withoutLeftEndpoints } from './kube-behavior.ts'

/** A real one would retry for a while, and then exit. */
async function directoryOfEtcd(store: string, refuse: Refuse): Promise<string> {
  const answer = await fetch(`${store}/health`).catch(() => refuse('etcd does not answer'))
  const { since, directory } = (await answer.json()) as { readonly since: number; readonly directory: string }
  if (performance.timeOrigin < since) refuse('this was started before etcd was ready')
  return directory
}

type Refuse = (why: string) => never

export async function serveApi(flag: (name: string) => string, refuse: Refuse): Promise<void> {
  // Without the flag, a real one uses an address of the machine, and fails if there is only loopback.
  if (!isIP(flag('advertise-address'))) refuse('--advertise-address must be an address')
  if (!/^\d+\.\d+\.\d+\.\d+\/\d+$/.test(flag('service-cluster-ip-range'))) refuse('--service-cluster-ip-range')
  if (new URL(flag('service-account-issuer')).protocol !== 'https:') refuse('--service-account-issuer must be https')
  for (const name of ['service-account-key-file', 'service-account-signing-key-file'])
    if (createPrivateKey(readFileSync(flag(name))).asymmetricKeyType !== 'rsa') refuse(`--${name} is not a key`)
  const [token = '', user, uid, groups] = readFileSync(flag('token-auth-file'), 'utf8').trim().split(',')
  if (!token || !user || !uid || !groups) refuse('--token-auth-file needs token, user, uid and groups')
  if (flag('authorization-mode') !== 'AlwaysAllow') refuse('nobody here has rights')
  const [cert, key] = [readFileSync(flag('tls-cert-file')), readFileSync(flag('tls-private-key-file'))]
  const directory = await directoryOfEtcd(flag('etcd-servers'), refuse)

  const clock = { now: Date.now, forward: () => {} }
  const apiServer = await buildApiServer({ kinds: kubeKinds, clock, engine: 'sqlite', directory })
  const front = await openFront({ ...apiServer, as: caller => withoutLeftEndpoints(apiServer.as(caller)) })
  const namespaces = openNamespaces(join(directory, 'namespaces'))
  /** Real ones become ready a while after they listen, and reject some requests until then. */
  let asked = 0
  const isReady = () => asked > 2
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const { url = '', method = '', headers } = request
    const answer = (code: number, body: object) =>
      response.writeHead(code, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
    const status = (code: number, reason: string, message = '') =>
      answer(code, { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message })
    if (headers.authorization !== `Bearer ${token}`) return status(401, 'Unauthorized')
    if (url === '/readyz') {
      asked++
      return isReady() ? answer(200, {}) : status(500, 'InternalError', 'not yet')
    }
    if (!isReady()) return status(403, 'Forbidden', 'not yet ready to handle request')
    if (url === '/api/v1/namespaces' && method === 'POST') {
      const body = JSON.parse(await text(request)) as { readonly metadata: { readonly name: string } }
      return namespaces.make(body.metadata.name) ? answer(201, body) : status(409, 'AlreadyExists')
    }
    const namespace = /\/namespaces\/([^/?]+)\//.exec(`${url}/`)?.[1]
    if (method === 'POST' && namespace && !namespaces.has(namespace))
      return status(404, 'NotFound', `namespaces "${namespace}" not found`)
    const pass = async (got: IncomingMessage) => {
      const code = got.statusCode ?? 500
      if (method === 'GET' && !/[?&]watch=/.test(url)) return answer(code, listed(await text(got)))
      response.writeHead(code, got.headers)
      response.flushHeaders()
      return got.pipe(response)
    }
    const passed = send(
      `${front.url}${prefix}${url}`,
      { method, headers },
      got => void pass(got).catch(() => response.destroy()),
    )
    passed.on('error', () => response.destroy())
    response.on('close', () => passed.destroy())
    return request.pipe(passed)
  }
  const server = createServer({ cert, key }, (request, response) => void serve(request, response))
  server.listen(Number(flag('secure-port')), flag('bind-address'))
}

type Listed = { readonly items?: readonly { readonly kind?: string; readonly apiVersion?: string }[] }

/** Items of a list have no kind, because the list has it. */
function listed(body: string): object {
  const answer = JSON.parse(body) as Listed
  return answer.items ? { ...answer, items: answer.items.map(({ kind: _, apiVersion: __, ...item }) => item) } : answer
}

function openNamespaces(file: string) {
  const known = new Set(existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : ['default', 'kube-system'])
  return {
    has: (name: string) => known.has(name),
    make(name: string): boolean {
      if (known.has(name)) return false
      known.add(name)
      writeFileSync(file, [...known].join('\n'))
      return true
    },
  }
}
