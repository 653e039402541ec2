// The connection pools of a cluster, one per client certificate, because a connection keeps the certificate it was opened with.

import type { Socket } from 'node:net'
import { createSecureContext } from 'node:tls'
import type { Access } from './cluster-config.ts'
import { connectorTo, directly } from './connector.ts'
import type { Identity } from './credentials.ts'
import { proxyFor } from './proxy.ts'
import { openUpstream, type Upstream } from './upstream.ts'

export type Reach = {
  readonly upstream: Upstream
  /** Opens a connection that prefers HTTP/2 to HTTP/1.1. Absent without TLS and behind a proxy. */
  readonly connectHttp2: (() => Socket) | undefined
  /** Aborted when the certificates change: close connections after their current request. */
  readonly retired: AbortSignal
}

export type Upstreams = {
  at(identity: Identity): Reach
  /** For a URL that may be on another server, such as the keys of an issuer. */
  to(url: string, identity: Identity): Upstream
  /** Closes idle connections now and the others after their request. */
  retire(): void
  /** Closes every connection. */
  destroy(): void
}

type Env = { readonly [name: string]: string | undefined }

export function openUpstreams(access: Access, env: Env, connections?: number): Upstreams {
  let current: (ReturnType<typeof openSet> & { readonly stamp: string }) | undefined
  const at = (identity: Identity) => {
    const stamp = [identity.ca, identity.certificate, identity.key].join('\n')
    if (current?.stamp !== stamp) {
      current?.retire()
      current = { stamp, ...openSet({ access, env, connections }, identity) }
    }
    return current
  }
  return {
    at: identity => at(identity).reach,
    to: (url, identity) => at(identity).to(new URL(url).origin),
    retire: () => current?.retire(),
    destroy: () => current?.destroy(),
  }
}

type SetOptions = { readonly access: Access; readonly env: Env; readonly connections: number | undefined }

/** Upstreams by origin, all with the same certificates. */
function openSet({ access, env, connections }: SetOptions, { ca, certificate, key }: Identity) {
  const end = new AbortController()
  const secureContext = createSecureContext({
    ...(ca ? { ca } : {}),
    ...(certificate && key ? { cert: certificate, key } : {}),
  })
  const open = new Map<string, Upstream>()
  const to = (server: string): Upstream => {
    const known = open.get(server)
    if (known) return known
    const proxy = proxyFor({ ...access, server }, env)
    const connect = connectorTo({ ...access, server, secureContext }, proxy)
    const upstream = openUpstream({ server, proxy, connect, ...(connections ? { connections } : {}) })
    open.set(server, upstream)
    return upstream
  }
  const mayUseHttp2 = access.server.startsWith('https:') && !proxyFor(access, env)
  return {
    to,
    reach: {
      upstream: to(new URL(access.server).origin),
      connectHttp2: mayUseHttp2 ? directly({ ...access, secureContext }, ['h2', 'http/1.1']) : undefined,
      retired: end.signal,
    },
    retire() {
      for (const upstream of open.values()) upstream.retire()
      end.abort()
    },
    destroy() {
      for (const upstream of open.values()) upstream.destroy()
    },
  }
}
