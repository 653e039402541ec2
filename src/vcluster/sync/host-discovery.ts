// Discovers the addresses of the host's API server and the owner for synced objects.

import { isIP } from 'node:net'
import { ApiError, isNotFound } from '../../api/errors.ts'
import type { OwnerReference, Resource } from '../../api/object.ts'
import type { Resources } from '../../api/resources.ts'
import { Endpoints, type EndpointsObject, Service } from './kinds.ts'

export type HostDiscoveryOptions = {
  /** URL of the host's API server. */
  readonly hostServer: string
  /** Resolves a host name; empty if a proxy resolves it. */
  readonly lookup: (name: string) => Promise<readonly string[]>
  readonly name: string
  readonly namespace: string
}

/** Queries the host. */
export type DiscoverHost = (host: Resources) => Promise<HostInfo>
export type HostInfo = { readonly addresses: readonly string[]; readonly owner: OwnerReference | undefined }

/** Limits the addresses kept after the host stops using them. */
const maxAddresses = 256

/**
 * Finds the addresses of the host's API server and the Service of the virtual cluster. Keeps the last answer while a query fails, and
 * keeps old addresses, so that the address guard never has a gap. Rejects until the first successful DNS lookup, so nothing is synced
 * without a guard.
 */
export function openHostDiscovery({ hostServer, lookup, name, namespace }: HostDiscoveryOptions): DiscoverHost {
  const own = new URL(hostServer).hostname.replace(/^\[|\]$/g, '')
  /** Ordered by last use. */
  const addresses = new Set<string>()
  let owner: OwnerReference | undefined
  let wasResolved = false
  const lookUp = async (): Promise<readonly string[]> => {
    try {
      const found = isIP(own) ? [own] : await lookup(own)
      wasResolved = true
      return found
    } catch (error) {
      if (wasResolved) return []
      const why = `cannot resolve ${own}, the host's API server: ${(error as Error).message}`
      throw new ApiError(503, 'ServiceUnavailable', why)
    }
  }
  const remember = (seen: ReadonlySet<string>) => {
    for (const one of seen) {
      addresses.delete(one)
      addresses.add(one)
    }
    for (const one of addresses) {
      if (addresses.size <= maxAddresses || seen.has(one)) break
      addresses.delete(one)
    }
  }
  return async host => {
    const [named, listed, service, ours] = await Promise.all([
      lookUp(),
      find(host, Endpoints, 'default', 'kubernetes'),
      find(host, Service, 'default', 'kubernetes'),
      find(host, Service, namespace, name),
    ])
    remember(new Set([...named, ...endpointsOf(listed), ...clusterIPsOf(service)]))
    if (ours !== 'forbidden') owner = ownerOf(ours)
    return { addresses: [...addresses].toSorted(), owner }
  }
}

type Found = Resource | 'forbidden' | undefined

const endpointsOf = (found: Found): readonly string[] =>
  typeof found === 'object'
    ? ((found as EndpointsObject).subsets ?? []).flatMap(({ addresses = [] }) => addresses.map(({ ip = '' }) => ip))
    : []
const clusterIPsOf = (found: Found): readonly string[] =>
  (typeof found === 'object' && (found.spec as { clusterIPs?: readonly string[] } | undefined)?.clusterIPs) || []
const ownerOf = (service: Resource | undefined): OwnerReference | undefined => {
  const { uid, name = '' } = service?.metadata ?? {}
  return uid ? { apiVersion: 'v1', kind: 'Service', name, uid } : undefined
}

/** Returns undefined if the object does not exist. */
async function find(resources: Resources, kind: typeof Service, namespace: string, name: string): Promise<Found> {
  try {
    return (await resources.get(kind, { namespace, name })).object
  } catch (error) {
    if (isNotFound(error)) return undefined
    if (error instanceof ApiError && error.code === 403) return 'forbidden'
    throw error
  }
}
