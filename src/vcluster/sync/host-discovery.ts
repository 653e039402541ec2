// What the syncer has to know of the host besides its endpoints: where its API server is, and who owns what is synced. sync.ts asks.

import { isIP } from 'node:net'
import { ApiError } from '../../api/errors.ts'
import type { OwnerReference, Resource } from '../../api/object.ts'
import type { Resources } from '../../api/resources.ts'
import { isNotFound } from './api-errors.ts'
import { Endpoints, type EndpointsObject, Service } from './kinds.ts'

export type LearnOptions = {
  /** URL of the host's API server. */
  readonly hostServer: string
  /** Addresses of a name; none where others look it up, such as a proxy. */
  readonly lookup: (name: string) => Promise<readonly string[]>
  readonly name: string
  readonly namespace: string
}

/** Asks the host. */
export type Learn = (host: Resources) => Promise<Known>
export type Known = { readonly addresses: readonly string[]; readonly owner: OwnerReference | undefined }

/** Addresses that are remembered though the host does not name them any more. */
const most = 256

/**
 * Answers where the host's API server is, and which Service is the virtual cluster's own. What cannot be asked just now is
 * as it was: a guard that forgets for a moment lets in for ever. An address that was the API server's stays one. Rejects
 * while its name has never been looked up: nothing is synced before there is a guard.
 */
export function openLearner({ hostServer, lookup, name, namespace }: LearnOptions): Learn {
  const own = new URL(hostServer).hostname.replace(/^\[|\]$/g, '')
  /** Last seen last. */
  const addresses = new Set<string>()
  let owner: OwnerReference | undefined
  let wasNamed = false
  const lookUp = async (): Promise<readonly string[]> => {
    try {
      const found = isIP(own) ? [own] : await lookup(own)
      wasNamed = true
      return found
    } catch (error) {
      if (wasNamed) return []
      const why = `cannot look up ${own}, where the host's API server is: ${(error as Error).message}`
      throw new ApiError(503, 'ServiceUnavailable', why)
    }
  }
  const remember = (seen: ReadonlySet<string>) => {
    for (const one of seen) {
      addresses.delete(one)
      addresses.add(one)
    }
    for (const one of addresses) {
      if (addresses.size <= most || seen.has(one)) break
      addresses.delete(one)
    }
  }
  return async host => {
    const [named, listed, service, ours] = await Promise.all([
      lookUp(),
      look(host, Endpoints, 'default', 'kubernetes'),
      look(host, Service, 'default', 'kubernetes'),
      look(host, Service, namespace, name),
    ])
    remember(new Set([...named, ...endpointsOf(listed), ...clusterIPsOf(service)]))
    if (ours !== 'forbidden') owner = ownerOf(ours)
    return { addresses: [...addresses].toSorted(), owner }
  }
}

type Looked = Resource | 'forbidden' | undefined

const endpointsOf = (found: Looked): readonly string[] =>
  typeof found === 'object'
    ? ((found as EndpointsObject).subsets ?? []).flatMap(({ addresses = [] }) => addresses.map(({ ip = '' }) => ip))
    : []
const clusterIPsOf = (found: Looked): readonly string[] =>
  (typeof found === 'object' && (found.spec as { clusterIPs?: readonly string[] } | undefined)?.clusterIPs) || []
const ownerOf = (service: Resource | undefined): OwnerReference | undefined => {
  const { uid, name = '' } = service?.metadata ?? {}
  return uid ? { apiVersion: 'v1', kind: 'Service', name, uid } : undefined
}

/** undefined: it is not there. */
async function look(resources: Resources, kind: typeof Service, namespace: string, name: string): Promise<Looked> {
  try {
    return (await resources.get(kind, { namespace, name })).object
  } catch (error) {
    if (isNotFound(error)) return undefined
    if (error instanceof ApiError && error.code === 403) return 'forbidden'
    throw error
  }
}
