// `fetch` into a cluster: TLS, credentials and time limits as its kubeconfig says. client/connect.ts is opened with it.

import type { Agent, IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import { Readable } from 'node:stream'
import { createSecureContext } from 'node:tls'
import { ApiError } from '../api/errors.ts'
import type { Access } from './access.ts'
import { type Identity, openCredentials } from './credentials.ts'
import { whyNot } from './why-not.ts'

export type Transport = {
  readonly server: string
  readonly namespace: string
  /** Rejects with an ApiError 503 where the server cannot be reached, 401 where credentials cannot be had. */
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>
  /** Ends every connection. */
  close(): void
}

export type TransportOptions = {
  readonly env: { readonly [name: string]: string | undefined }
  readonly now: () => number
  /** Until an answer begins. */
  readonly answerWithin?: number
  /** A body that says nothing for so long has lost its sender. */
  readonly quietFor?: number
}

const connections = 32

// Not imported: the module form of node:http makes all of its exports at once, a WebSocket among them, and that loads
// what a browser has for fetch. It costs 50 ms, which is a third of a command's whole time.
const { Agent: HttpAgent, request: requestHttp } = process.getBuiltinModule('node:http')

/** The way into a cluster for those who make requests themselves, such as a gateway. */
export type Dial = {
  readonly server: string
  /** What a request of this moment is made with. Rejects with a sentence where credentials cannot be had. */
  now(): Promise<{ readonly agent: Agent; readonly authorization: string | undefined }>
  /** The cluster refused them; answers whether the next may be others. */
  refuse(): boolean
  /** What went wrong with a request, in words. */
  why(error: Error & { readonly code?: string }): string
  /** Connections that nobody uses are ended, the others when they are done. */
  retire(): void
}

export function openDial(access: Access, { env, now }: Pick<TransportOptions, 'env' | 'now'>): Dial {
  const credentials = openCredentials(access, { env, now })
  const agents = openAgents(access, env, Number.POSITIVE_INFINITY)
  return {
    server: access.server,
    async now() {
      const identity = await credentials.now()
      return { agent: agents.of(identity), authorization: identity.authorization }
    },
    refuse() {
      credentials.refuse()
      return credentials.mayChange
    },
    why: error => whyNot(error, access.server).replace(/^: /, ''),
    retire: agents.retire,
  }
}

export function openTransport(access: Access, options: TransportOptions): Transport {
  const { env, now, answerWithin = 30_000, quietFor = 300_000 } = options
  const credentials = openCredentials(access, { env, now })
  const agents = openAgents(access, env, connections)

  async function once(url: string, init: RequestInit): Promise<Response> {
    const { agent, authorization } = await credentials
      .now()
      .then(identity => ({ agent: agents.of(identity), authorization: identity.authorization }))
      .catch(error => {
        throw new ApiError(401, 'Unauthorized', (error as Error).message)
      })
    const headers = {
      ...(init.headers as { [name: string]: string }),
      ...(authorization ? { Authorization: authorization } : {}),
    }
    return send(url, { ...init, headers }, { agent, answerWithin, quietFor })
  }

  return {
    server: access.server,
    namespace: access.namespace,
    async fetch(url, init) {
      const response = await once(url, init)
      if (response.status !== 401 || !credentials.mayChange) return response
      await response.body?.cancel()
      credentials.refuse()
      return once(url, init)
    },
    close: agents.close,
  }
}

/** An agent for each identity: connections made with a certificate stay that certificate's. */
function openAgents(access: Access, env: TransportOptions['env'], maxSockets: number) {
  let current: { readonly stamp: string; readonly agent: Agent } | undefined
  const proxyEnv = access.proxy ? { HTTP_PROXY: access.proxy, HTTPS_PROXY: access.proxy } : (env as NodeJS.ProcessEnv)
  const make = ({ ca, certificate, key }: Identity): Agent => {
    const common = { keepAlive: true, maxSockets, proxyEnv }
    if (access.server.startsWith('http:')) return new HttpAgent(common)
    return new HttpsAgent({
      ...common,
      rejectUnauthorized: !access.insecure,
      // One for all connections: each would make its own, which costs memory and time.
      secureContext: createSecureContext({
        ...(ca ? { ca } : {}),
        ...(certificate && key ? { cert: certificate, key } : {}),
      }),
      ...(access.serverName ? { servername: access.serverName } : {}),
    })
  }
  return {
    of(identity: Identity): Agent {
      const stamp = [identity.ca, identity.certificate, identity.key].join('\n')
      if (current?.stamp !== stamp) {
        const before = current?.agent
        current = { stamp, agent: make(identity) }
        // What is under way may finish; sockets that are free would be reused with the old certificate by nobody.
        endFree(before)
      }
      return current.agent
    },
    retire: () => endFree(current?.agent),
    close: () => current?.agent.destroy(),
  }
}

function endFree(agent: Agent | undefined): void {
  for (const sockets of Object.values(agent?.freeSockets ?? {})) for (const socket of sockets ?? []) socket.destroy()
}

type SendOptions = { readonly agent: Agent; readonly answerWithin: number; readonly quietFor: number }

function send(url: string, init: RequestInit, { agent, answerWithin, quietFor }: SendOptions): Promise<Response> {
  const { origin } = new URL(url)
  const request = url.startsWith('https:') ? requestHttps : requestHttp
  const { body, signal, method = 'GET', headers } = init
  return new Promise((resolve, reject) => {
    const sent = request(url, {
      agent,
      method,
      headers: {
        ...(headers as { [name: string]: string }),
        ...(typeof body === 'string' ? { 'Content-Length': String(Buffer.byteLength(body)) } : {}),
      },
      ...(signal ? { signal } : {}),
    })
    const timer = setTimeout(() => sent.destroy(new Error(`no answer within ${answerWithin / 1000} s`)), answerWithin)
    sent.on('socket', socket => socket.setKeepAlive(true, 15_000))
    sent.on('error', error => {
      clearTimeout(timer)
      reject(signal?.aborted ? error : unreachable(origin, error))
    })
    sent.on('response', answer => {
      clearTimeout(timer)
      answer.setTimeout(quietFor, () => answer.destroy(new Error('the connection has gone quiet')))
      if (isWatch(url)) resolve(new Response(Readable.toWeb(answer) as ReadableStream<Uint8Array>, headOf(answer)))
      else
        readWhole(answer).then(
          body => resolve(wholeResponse(answer, body)),
          error => reject(unreachable(origin, error)),
        )
    })
    sent.end(typeof body === 'string' ? body : undefined)
  })
}

const isWatch = (url: string) => /[?&]watch=(true|1)(&|$)/.test(url)

function headOf(answer: IncomingMessage): { readonly status: number; readonly headers: Headers } {
  const headers = new Headers()
  for (const [name, value] of Object.entries(answer.headersDistinct)) headers.set(name, (value ?? []).join(', '))
  return { status: answer.statusCode ?? 500, headers }
}

async function readWhole(answer: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of answer) chunks.push(chunk as Buffer)
  return chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)
}

/** As much of a Response as is asked of one. A real one brings a stream, and that is most of the work for a small answer. */
function wholeResponse(answer: IncomingMessage, body: Buffer): Response {
  const status = answer.statusCode ?? 500
  const text = async () => body.toString()
  const light = {
    status,
    headers: { get: (name: string) => answer.headersDistinct[name.toLowerCase()]?.join(', ') ?? null },
    ok: status >= 200 && status < 300,
    body: null,
    text,
    json: async () => JSON.parse(await text()) as unknown,
    arrayBuffer: async () => body.buffer.slice(body.byteOffset, body.byteOffset + body.length) as ArrayBuffer,
  }
  return light as unknown as Response
}

const unreachable = (origin: string, error: Error) =>
  new ApiError(503, 'ServiceUnavailable', `cannot reach ${origin}${whyNot(error, origin)}`)
