// What the syncer has to know of the host besides its endpoints: where its API server is, and who owns what is synced. sync.ts asks.

import { isIP } from 'node:net'
import { ApiError } from '../api/errors.ts'
import type { OwnerReference, Resource } from '../api/object.ts'
import type { Resources } from '../api/resources.ts'
import { Endpoints, type EndpointsObject, Service } from './kinds.ts'

export type LearnOptions = {
  readonly host: Resources
  /** URL of the host's API server. */
  readonly hostServer: string
  /** Addresses of a name. */
  readonly lookup: (name: string) => Promise<readonly string[]>
  readonly name: string
  readonly namespace: string
}

export type Known = { readonly addresses: readonly string[]; readonly owner: OwnerReference | undefined }

/** Where the host's API server is, and which Service is the virtual cluster's own. */
export async function learn({ host, hostServer, lookup, name, namespace }: LearnOptions): Promise<Known> {
  const own = new URL(hostServer).hostname.replace(/^\[|\]$/g, '')
  const [named, listed, service, owner] = await Promise.all([
    isIP(own) ? [own] : lookup(own).catch(() => []),
    look(host, Endpoints, 'default', 'kubernetes'),
    look(host, Service, 'default', 'kubernetes'),
    look(host, Service, namespace, name),
  ])
  const subsets = (listed as EndpointsObject | undefined)?.subsets ?? []
  const { clusterIPs = [] } = (service?.spec ?? {}) as { readonly clusterIPs?: readonly string[] }
  const uid = owner?.metadata.uid
  return {
    addresses: [
      ...named,
      ...subsets.flatMap(({ addresses = [] }) => addresses.map(({ ip = '' }) => ip)),
      ...clusterIPs,
    ],
    owner: uid ? { apiVersion: 'v1', kind: 'Service', name, uid } : undefined,
  }
}

/** undefined: it is not there, or not ours to see. */
async function look(
  resources: Resources,
  kind: typeof Service,
  namespace: string,
  name: string,
): Promise<Resource | undefined> {
  try {
    return (await resources.get(kind, { namespace, name })).object
  } catch (error) {
    if (error instanceof ApiError && (error.code === 404 || error.code === 403)) return undefined
    throw error
  }
}
