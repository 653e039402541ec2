// Responses that arrive while the client still sends its body: the client receives them before the connection closes.

import assert from 'node:assert/strict'
import { request } from 'node:https'
import { after, before, describe, test } from 'node:test'
import { closeAll } from '../support/close-all.ts'
import { type Server, startServer } from '../support/server.ts'
import { type GatewayProcess, invite, startGateway } from './gateway-fixture.ts'
import { openBackend, type TestBackend } from './in-process.ts'

const body = Buffer.alloc(6 * 1024 * 1024, 0x20)
const rounds = 60
/** Repeated, because one of two responses was lost before the fix. */
const few = 15
const pods = '/api/v1/namespaces/default/pods'

type Asked = { readonly headers?: { readonly [name: string]: string }; readonly method?: string }

/** A client that closes after each answer. Node says `Connection: close` where it has no agent. */
function send(url: string, { headers = {}, method = 'POST' }: Asked): Promise<string> {
  return new Promise(resolve => {
    const sent = request(url, { method, agent: false, rejectUnauthorized: false, headers })
    sent.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    sent.on('response', answer => {
      let text = ''
      answer.on('data', chunk => {
        text += chunk
      })
      answer.on('error', (error: NodeJS.ErrnoException) => resolve(`half: ${error.code}`))
      answer.on('end', () => resolve(`${answer.statusCode} ${(JSON.parse(text) as { kind: string }).kind}`))
    })
    sent.end(body)
  })
}

async function outcomes(url: string, asked: Asked, rounds = few): Promise<{ [outcome: string]: number }> {
  const found: { [outcome: string]: number } = {}
  for (let round = 0; round < rounds; round++) {
    const outcome = await send(url, asked)
    found[outcome] = (found[outcome] ?? 0) + 1
  }
  return found
}

describe('a client that is still sending receives the response', { timeout: 120_000 }, () => {
  let server: Server
  let backend: TestBackend
  /** A process of its own: one that shares its turns with the client is never too fast for it. */
  let gateway: GatewayProcess
  let good: { authorization: string }
  let narrow: { authorization: string }
  before(async () => {
    server = await startServer({ storage: 'memory' })
    // A cluster that does not want it, says so at once, and waits until all of it is there.
    backend = await openBackend((request, response) => {
      response.writeHead(413).end('{"kind":"Status"}')
      request.resume()
    })
    const clusters = [{ name: 'prod', kubeconfig: 'slow.json' }]
    gateway = await startGateway(server, { clusters }, { slow: backend.url })
    const ada = await invite(server, 'ada')
    good = { authorization: `Bearer ${await ada.mint()}` }
    narrow = { authorization: `Bearer ${await ada.mint({ scope: { clusters: [{ cluster: 'dev' }] } })}` }
  })
  after(async () => {
    await closeAll(gateway.stop, backend.close, server.stop)
  })

  test('of the gateway, 401: no token', async () => {
    assert.deepEqual(await outcomes(`${gateway.url}/kubernetes/cluster/prod${pods}`, {}, rounds), {
      '401 Status': rounds,
    })
  })
  test('of the gateway, 403: impersonation, or outside the scope', async () => {
    const url = `${gateway.url}/kubernetes/cluster/prod${pods}`
    const headers = { ...good, 'impersonate-user': 'root' }
    assert.deepEqual(await outcomes(url, { headers }), { '403 Status': few })
    assert.deepEqual(await outcomes(url, { headers: narrow }), { '403 Status': few })
  })
  test('of the gateway, 404: unknown cluster', async () => {
    const url = `${gateway.url}/kubernetes/cluster/none${pods}`
    assert.deepEqual(await outcomes(url, { headers: good }), { '404 Status': few })
  })
  test('of the gateway, 400: ambiguous path', async () => {
    const url = `${gateway.url}/kubernetes/cluster/prod/api%2Fv1`
    assert.deepEqual(await outcomes(url, { headers: good }), { '400 Status': few })
  })
  test('of the cluster, 413 before it has read the body', async () => {
    const url = `${gateway.url}/kubernetes/cluster/prod${pods}`
    assert.deepEqual(await outcomes(url, { headers: good }), { '413 Status': few })
  })

  const teams = '/kubernetes/management/apis/management.platform.sh/v1/teams'

  test('of the server, 401: no key', async () => {
    assert.deepEqual(await outcomes(`${server.https}${teams}`, {}, rounds), { '401 Status': rounds })
  })
  test('of the server, 404 and 415: unknown path, or unknown media type', async () => {
    const headers = { authorization: `Bearer ${server.adminKey}`, 'content-type': 'text/plain' }
    assert.deepEqual(await outcomes(`${server.https}${teams}x`, { headers }), { '404 Status': few })
    assert.deepEqual(await outcomes(`${server.https}${teams}`, { headers }), { '415 Status': few })
  })
})
