// The way into a cluster for those who make requests themselves, such as a gateway.

import type { Agent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import type { Socket } from 'node:net'
import { connect as connectTcp, isIP } from 'node:net'
import { connect as connectTls, createSecureContext, type SecureContext } from 'node:tls'
import type { Access } from './cluster-config.ts'
import { causeOf } from './connection-error.ts'
import { type Identity, openCredentials } from './credentials.ts'
import type { TransportOptions } from './transport.ts'

// Not imported: the module form of node:http makes all of its exports at once, a WebSocket among them, and that loads
// what a browser has for fetch. It costs 50 ms, which is a third of a command's whole time.
const { Agent: HttpAgent } = process.getBuiltinModule('node:http')

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
