// Selects the HTTP proxy for a server, and opens tunnels through it.

import type { Duplex } from 'node:stream'
import type { Access } from './cluster-config.ts'
import { proxyRefused } from './connection-error.ts'
import { loadUndici } from './undici.ts'

type Env = { readonly [name: string]: string | undefined }

/** A kubeconfig's proxy comes first, and NO_PROXY does not apply to it, as in client-go. */
export function proxyFor({ server, proxy }: Pick<Access, 'server' | 'proxy'>, env: Env): URL | undefined {
  if (proxy) return new URL(proxy)
  const { protocol, hostname } = new URL(server)
  const name = `${protocol.slice(0, -1)}_proxy`
  const found = env[name] || env[name.toUpperCase()]
  if (!found || bypassesProxy(env, hostname)) return undefined
  const url = found.includes('://') ? found : `http://${found}`
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new Error(`${name.toUpperCase()} must be a URL such as http://proxy.example:3128`)
  return new URL(url)
}

/** Whether NO_PROXY contains the host: by name, by suffix, or with a star. */
export function bypassesProxy(env: Env, hostname: string): boolean {
  const names = (env['no_proxy'] || env['NO_PROXY'] || '').split(/[\s,]+/).map(one => one.replace(/:\d+$/, ''))
  return names.some(
    one => one === '*' || one === hostname || (one && hostname.endsWith(`.${one.replace(/^\*?\./, '')}`)),
  )
}

/** Name and value of the header that carries the user and password of a proxy's URL. Empty if it has none. */
export function proxyAuthorization({ username, password }: URL): string[] {
  if (!username && !password) return []
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return ['Proxy-Authorization', `Basic ${Buffer.from(pair).toString('base64')}`]
}

type Tunnel = {
  readonly proxy: URL
  /** HOST:PORT of the server behind the proxy. */
  readonly target: string
  /** Connects to the proxy itself. */
  readonly connect: () => Promise<Duplex>
}

const closedByProxy = () =>
  Object.assign(new Error('the proxy closed the connection without a response'), { code: 'ECONNRESET' })

/** Sends CONNECT and resolves with the tunnel. Rejects with the status of the proxy if it does not open one. */
export function openTunnel({ proxy, target, connect }: Tunnel): Promise<Duplex> {
  const { Client } = loadUndici()
  return new Promise((resolve, reject) => {
    const client = new Client(proxy.origin, {
      connect: (_, callback) =>
        void connect().then(
          socket => callback(null, socket as never),
          error => callback(error, null),
        ),
      headersTimeout: 0,
    })
    const headers = ['Host', target, ...proxyAuthorization(proxy)]
    client.dispatch(
      { method: 'CONNECT', path: target, headers },
      {
        onRequestStart() {},
        onRequestUpgrade(_, status, __, socket) {
          if (status >= 200 && status < 300) return resolve(socket)
          socket.on('error', () => {}).destroy()
          reject(Object.assign(new Error(`the proxy answered CONNECT with ${status}`), { code: proxyRefused, status }))
        },
        // The client that waits for the tunnel would treat undici's own error as one of its own, and reconnect forever.
        onResponseError: (_, error) =>
          reject('code' in error && error.code === 'UND_ERR_SOCKET' ? closedByProxy() : error),
      },
    )
    void client.close()
  })
}
