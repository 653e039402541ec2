// Opens the cluster that a command names: from a kubeconfig, or from the service account of the pod.

import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { ApiError } from '../api/errors.ts'
import type { Resources } from '../api/resources.ts'
import { connect, type Fetch } from '../client/connect.ts'
import { type Discover, openDiscovery } from '../client/discovery.ts'
import { type Io, UsageError } from '../host/command.ts'
import type { Access } from './cluster-config.ts'
import { inClusterAccess } from './in-cluster.ts'
import { KubeconfigError, readKubeconfig } from './kubeconfig.ts'
import type { TenantRules } from './tenant-kubeconfig.ts'
import { openTransport } from './transport.ts'

export type { Discover }

export type OpenedCluster = {
  readonly server: string
  /** Whether only a proxy may be able to resolve the server's name. */
  readonly isProxied: boolean
  /** Whether requests can reach only this server: its certificate is verified, or it is on this machine. */
  readonly isVerified: boolean
  readonly resources: Resources
  /** The same resources until the signal aborts. Then requests in flight are aborted, and new ones fail. */
  until(signal: AbortSignal): Resources
  /** Reads which resources the server has, until the signal aborts. */
  discoverUntil(signal: AbortSignal): Discover
  close(): void
}

export type Reach = {
  /** Absent: the cluster of this pod. */
  readonly file: string | undefined
  readonly context: string | undefined
  /** Set if a tenant supplied the file. */
  readonly tenant?: TenantRules
  /** Wraps every request, for traces. */
  readonly wrap?: ((fetch: Fetch) => Fetch) | undefined
}

/** Throws UsageError. */
export async function openCluster(reach: Reach, io: Io): Promise<OpenedCluster> {
  const access = await accessOf(reach, io).catch(error => {
    throw new UsageError(error instanceof KubeconfigError ? error.problems : [(error as Error).message])
  })
  const transport = openTransport(access, { env: io.env, now: io.now })
  const send = reach.wrap?.(transport.fetch) ?? transport.fetch
  const through = (fetch: Fetch) => connect({ url: access.server, below: '', fetch })
  return {
    server: access.server,
    isProxied: Boolean(access.proxy) || Object.entries(io.env).some(([key, url]) => url && /^https?_proxy$/i.test(key)),
    isVerified: isVerified(access),
    resources: through(send),
    until: signal => through(endingWith(signal, send)),
    discoverUntil: signal => openDiscovery({ url: access.server, below: '', fetch: endingWith(signal, send) }),
    close: transport.close,
  }
}

function endingWith(signal: AbortSignal, fetch: Fetch): Fetch {
  return async (url, init) => {
    try {
      return await fetch(url, { ...init, signal: init.signal ? AbortSignal.any([init.signal, signal]) : signal })
    } catch (error) {
      if (!signal.aborted) throw error
      throw new ApiError(
        503,
        'ServiceUnavailable',
        'the request was cancelled: the syncer stopped or reached its time limit',
      )
    }
  }
}

async function accessOf({ file, context, tenant }: Reach, io: Io): Promise<Access> {
  if (file === undefined) return inClusterAccess({ env: io.env, readText })
  return readKubeconfig(await io.readFile(file), { file, directory: dirname(resolve(file)), context, tenant })
}

function isVerified({ server, insecure }: Access): boolean {
  const { protocol, hostname } = new URL(server)
  const isLoopback = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)
  return isLoopback || (protocol === 'https:' && !insecure)
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}
