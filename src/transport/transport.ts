// `fetch` into a cluster: TLS, credentials and time limits as its kubeconfig says. client/connect.ts is opened with it.

import type { Agent } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls, createSecureContext, type SecureContext } from 'node:tls'
import { ApiError } from '../api/errors.ts'
import type { Access } from './cluster-config.ts'
import { causeOf, noAnswerWithin, usualCa, whyNot } from './connection-error.ts'
import { type Identity, openCredentials } from './credentials.ts'
import { readWhole, streamedResponse, wholeResponse } from './response.ts'

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
  /** Bytes of an answer that is no watch; default any. Rejects with 422 where it has more. */
  readonly most?: number
  /** What the setting with the CA is called, for whoever has to look after it. */
  readonly caIs?: string
}

const connections = 32

// Not imported: the module form of node:http makes all of its exports at once, a WebSocket among them, and that loads
// what a browser has for fetch. It costs 50 ms, which is a third of a command's whole time.
const { Agent: HttpAgent, request: requestHttp } = process.getBuiltinModule('node:http')

/** The way into a cluster for those who make requests themselves, such as a gateway. */
export type Dial = {
  readonly server: string
  /** What a request of this moment is made with. Rejects with a sentence where credentials cannot be had. */
  now(): Ready | Promise<Ready>
  /** The cluster refused them; answers whether the next may be others. */
  refuse(): boolean
  /** What went wrong with a request, in words. */
  why(error: Error & { readonly code?: string }): string
  /** Connections of the agent that nobody uses are ended, the others when they are done. Those of `connect` and `share` are their opener's to end. */
  retire(): void
}

type Ready = {
  readonly agent: Agent
  readonly authorization: string | undefined
  /** Opens a connection, for as long as it is made the same way the same one; absent behind a proxy. */
  readonly connect: (() => Socket) | undefined
  /** The same, over TLS alone: offers HTTP/2 before HTTP/1.1. */
  readonly share: (() => Socket) | undefined
  /** Aborted when the cluster is reached so no more, because of another certificate or another file: nothing is to be kept. */
  readonly retired: AbortSignal
}

/** Looking at files for every request would be most of the work for a small one. */
const readyFor = 1000

export function openDial(access: Access, { env, now }: Pick<TransportOptions, 'env' | 'now'>): Dial {
  const credentials = openCredentials(access, { env, now })
  const agents = openAgents(access, env, Number.POSITIVE_INFINITY)
  let kept: { readonly ready: Ready; readonly until: number } | undefined
  let refusals = 0
  const look = async (): Promise<Ready> => {
    const before = refusals
    const identity = await credentials.now()
    const { agent, connect, share, retired } = agents.at(identity)
    const ready = { agent, connect, share, retired, authorization: identity.authorization }
    // What was refused while it was looked for is not kept.
    if (refusals === before) kept = { ready, until: now() + readyFor }
    return ready
  }
  return {
    server: access.server,
    now: () => (kept && now() < kept.until ? kept.ready : look()),
    refuse() {
      kept = undefined
      refusals++
      credentials.refuse()
      return credentials.mayChange
    },
    // Nothing of what Node says of it: clients read this, and addresses behind the gateway are not theirs to know.
    why: error => causeOf(error) ?? `the connection failed${error.code ? ` (${error.code})` : ''}`,
    retire: agents.retire,
  }
}

export function openTransport(access: Access, options: TransportOptions): Transport {
  const {
    env,
    now,
    answerWithin = 30_000,
    quietFor = 300_000,
    most = Number.POSITIVE_INFINITY,
    caIs = usualCa,
  } = options
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
    return send(url, { ...init, headers }, { agent, answerWithin, quietFor, most, caIs })
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
  let current: (Way & { readonly stamp: string }) | undefined
  const proxyEnv = access.proxy ? { HTTP_PROXY: access.proxy, HTTPS_PROXY: access.proxy } : (env as NodeJS.ProcessEnv)
  const isProxied = Object.entries(proxyEnv).some(([name, value]) => value && /^https?_proxy$/i.test(name))
  const make = ({ ca, certificate, key }: Identity): Way => {
    const common = { keepAlive: true, maxSockets, proxyEnv }
    const end = new AbortController()
    const ended = { end, retired: end.signal }
    if (access.server.startsWith('http:'))
      return {
        ...ended,
        agent: new HttpAgent(common),
        connect: isProxied ? undefined : connector(access),
        share: undefined,
      }
    // One for all connections: each would make its own, which costs memory and time.
    const secureContext = createSecureContext({
      ...(ca ? { ca } : {}),
      ...(certificate && key ? { cert: certificate, key } : {}),
    })
    const agent = new HttpsAgent({
      ...common,
      rejectUnauthorized: !access.insecure,
      secureContext,
      ...(access.serverName ? { servername: access.serverName } : {}),
    })
    const over = (...protocols: string[]) => (isProxied ? undefined : connector(access, { secureContext, protocols }))
    return { ...ended, agent, connect: over('http/1.1'), share: over('h2', 'http/1.1') }
  }
  const at = (identity: Identity): Way => {
    const stamp = [identity.ca, identity.certificate, identity.key].join('\n')
    if (current?.stamp !== stamp) {
      const before = current
      current = { stamp, ...make(identity) }
      // What is under way may finish; sockets that are free would be reused with the old certificate by nobody.
      retire(before)
    }
    return current
  }
  return {
    at,
    of: (identity: Identity): Agent => at(identity).agent,
    retire: () => retire(current),
    close: () => current?.agent.destroy(),
  }
}

type Way = Omit<Ready, 'authorization'> & { readonly end: AbortController }
type Over = { readonly secureContext: SecureContext; readonly protocols: string[] }

/** Over TLS where there is a context for it. What was negotiated once is taken up again by the next connection. */
function connector({ server, serverName, insecure }: Access, tls?: Over): () => Socket {
  const url = new URL(server)
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const port = Number(url.port || (tls ? 443 : 80))
  if (!tls) return () => connectTcp({ host, port })
  const { secureContext, protocols: ALPNProtocols } = tls
  let session: Buffer | undefined
  const servername = serverName ?? (isIP(host) ? '' : host)
  return () => {
    const socket = connectTls({
      host,
      port,
      secureContext,
      servername,
      rejectUnauthorized: !insecure,
      ALPNProtocols,
      ...(session ? { session } : {}),
    })
    return socket.on('session', next => {
      session = next
    })
  }
}

/** What is free ends at once, the others when they are done. */
function retire(way: Way | undefined): void {
  if (!way) return
  way.agent.maxFreeSockets = 0
  for (const sockets of Object.values(way.agent.freeSockets)) for (const one of sockets ?? []) one.destroy()
  way.end.abort()
}

type SendOptions = {
  readonly agent: Agent
  readonly answerWithin: number
  readonly quietFor: number
  readonly most: number
  readonly caIs: string
}

function send(url: string, init: RequestInit, options: SendOptions): Promise<Response> {
  const { agent, answerWithin, quietFor, most, caIs } = options
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
    const timer = setTimeout(() => sent.destroy(noAnswerWithin(answerWithin)), answerWithin)
    sent.on('socket', socket => socket.setKeepAlive(true, 15_000))
    sent.on('error', error => {
      clearTimeout(timer)
      reject(signal?.aborted ? error : unreachable(origin, error, caIs))
    })
    sent.on('response', answer => {
      clearTimeout(timer)
      answer.setTimeout(quietFor, () => answer.destroy(new Error('the connection has gone quiet')))
      if (isWatch(url) && answer.statusCode === 200) resolve(streamedResponse(answer))
      else
        readWhole(answer, url, most).then(
          body => resolve(wholeResponse(answer, body)),
          // An abort was told above, before this.
          error => reject(error instanceof ApiError ? error : unreachable(origin, error, caIs)),
        )
    })
    sent.end(typeof body === 'string' ? body : undefined)
  })
}

const isWatch = (url: string) => /[?&]watch=(true|1)(&|$)/.test(url)

const unreachable = (origin: string, error: Error, caIs: string) =>
  Object.assign(new ApiError(503, 'ServiceUnavailable', `cannot reach ${origin}${whyNot(error, origin, caIs)}`), {
    cause: error,
  })
