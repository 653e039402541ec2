// A cluster that speaks HTTP/2, made by hand, and a gateway before it that is watched through. For the tests of shared connections.

import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import {
  createSecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
  type Settings,
} from 'node:http2'
import type { AddressInfo } from 'node:net'
import { afterEach } from 'node:test'
import { issueCertificate, makeAuthority } from '../../src/serving/certificate.ts'
import { openDial } from '../../src/transport/dial.ts'
import { closeAll } from '../support/close-all.ts'
import { eventually } from '../support/wire.ts'
import { claimsFor, type Options, openBackend, openTestGateway, type TestGateway } from './in-process.ts'

export const authority = makeAuthority(Date.now())
const pair = issueCertificate(authority, ['127.0.0.1', 'localhost'], Date.now())
export const tls = { cert: pair.certificate, key: pair.key }
const watching = '/kubernetes/cluster/prod/api/v1/pods?watch=true'
export const closing: (() => unknown)[] = []
afterEach(() => closeAll(...closing.splice(0).reverse()))

type Got = { readonly request: Http2ServerRequest; readonly response: Http2ServerResponse }

/** A cluster that speaks HTTP/2 and begins an answer to everything. */
export async function openCluster(settings: Settings = {}, answer?: (got: Got) => void) {
  const sessions = new Set<ServerHttp2Session>()
  const got: Got[] = []
  const server = createSecureServer({ ...tls, allowHTTP1: true, settings }, (request, response) => {
    got.push({ request, response })
    request.on('error', () => {})
    response.on('error', () => {})
    if (answer) return answer({ request, response })
    response.writeHead(200, { 'content-type': 'application/json', 'set-cookie': 'a=b', 'x-kubernetes-pf': 'a' })
    response.write('first\n')
  })
  server.on('session', session => {
    sessions.add(session)
    session.on('error', () => {})
    session.on('close', () => sessions.delete(session))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closing.push(() => {
    for (const session of sessions) session.destroy()
    server.close()
  })
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, sessions, got }
}

export const dialTo = (server: string, ca = authority.certificate) =>
  openDial({ server, namespace: '', insecure: false, ca: { text: ca } }, { env: {}, now: Date.now })

export async function openBefore(
  server: string,
  dial = dialTo(server),
  more: Partial<Options> = {},
): Promise<TestGateway> {
  const gateway = await openTestGateway({ backend: await openBackend(), server, dial, ...more })
  closing.push(() => gateway.close())
  return gateway
}

type Watch = {
  readonly status: number
  readonly answer: IncomingMessage
  text: string
  end: 'open' | 'whole' | 'broken'
}

export async function watch(
  gateway: TestGateway,
  headers: object = {},
  claims = claimsFor(),
  path = watching,
): Promise<Watch> {
  const Authorization = `Bearer ${await gateway.sign(claims)}`
  const call = request(`${gateway.url}${path}`, { headers: { Authorization, ...headers }, agent: false }).end()
  call.on('error', () => {})
  const [answer] = (await once(call, 'response')) as [IncomingMessage]
  const seen: Watch = { status: answer.statusCode ?? 0, answer, text: '', end: 'open' }
  answer.on('data', chunk => {
    seen.text += chunk
  })
  answer.on('end', () => {
    seen.end = 'whole'
  })
  answer.on('error', () => {
    seen.end = 'broken'
  })
  return seen
}

export const until = (what: string, is: () => boolean) => eventually(what, async () => is())
