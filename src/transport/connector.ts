// Opens connections to a server: plain or TLS, directly or through a proxy. upstream.ts sends requests on them.

import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls, type SecureContext } from 'node:tls'
import type { Access } from './cluster-config.ts'
import { openTunnel } from './proxy.ts'

/** Resolves with a connection that is ready for a request. Rejects with ETIMEDOUT after `within` milliseconds. */
export type Connect = (within: number) => Promise<Socket>

export type Target = Pick<Access, 'server' | 'serverName' | 'insecure'> & {
  /** Shared by connections, because one per connection would cost memory and time. */
  readonly secureContext?: SecureContext | undefined
}

/** Begins a direct connection. It resumes the TLS session of the one before. */
export function directly(target: Target, protocols: readonly string[] = ['http/1.1']): () => Socket {
  const { host, port, tls } = addressOf(target, protocols)
  if (!tls) return () => connectTcp({ host, port })
  let session: Buffer | undefined
  return () =>
    connectTls({ host, port, ...tls, ...(session ? { session } : {}) }).on('session', next => {
      session = next
    })
}

export function connectorTo(target: Target, proxy: URL | undefined): Connect {
  if (!proxy) {
    const open = directly(target)
    return within => connected(open(), within)
  }
  const { host, port, tls } = addressOf(target, ['http/1.1'])
  const toProxy = directly({ server: proxy.origin, insecure: false })
  // Plain HTTP needs no tunnel: upstream.ts sends the whole URL to the proxy.
  if (!tls) return within => connected(toProxy(), within)
  const name = host.includes(':') ? `[${host}]` : host
  return async within => {
    const tunnel = await openTunnel({ proxy, target: `${name}:${port}`, connect: () => connected(toProxy(), within) })
    return connected(connectTls({ ...tls, host, socket: tunnel }), within)
  }
}

type Address = { readonly host: string; readonly port: number; readonly tls: ConnectionOptions | undefined }

function addressOf({ server, serverName, insecure, secureContext }: Target, protocols: readonly string[]): Address {
  const url = new URL(server)
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const isTls = url.protocol === 'https:'
  const port = Number(url.port || (isTls ? 443 : 80))
  if (!isTls) return { host, port, tls: undefined }
  const tls = {
    servername: serverName ?? (isIP(host) ? '' : host),
    rejectUnauthorized: !insecure,
    ALPNProtocols: [...protocols],
    ...(secureContext ? { secureContext } : {}),
  }
  return { host, port, tls }
}

/** The kernel sends keep-alive probes after this idle time, and closes the connection after ten probes. */
const probeAfter = 30_000

function connected(open: Socket, within: number): Promise<Socket> {
  open.setNoDelay(true)
  open.setKeepAlive(true, probeAfter)
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => open.destroy(Object.assign(new Error('connection timed out'), { code: 'ETIMEDOUT' })),
      within,
    )
    open.on('error', reject)
    open.once('close', () => {
      clearTimeout(timer)
      reject(Object.assign(new Error('the connection was closed'), { code: 'ECONNRESET' }))
    })
    open.once('encrypted' in open ? 'secureConnect' : 'connect', () => {
      clearTimeout(timer)
      resolve(open)
    })
  })
}
