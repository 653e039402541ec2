// Reads which resources a server has, from its discovery documents.

import { ApiError } from '../api/errors.ts'
import { prefix } from '../api/paths.ts'
import type { Fetch } from './connect.ts'
import { errorOf } from './response-error.ts'

/** A resource of one group and version. `name` is the plural. */
export type DiscoveredResource = { readonly name: string; readonly kind: string; readonly namespaced: boolean }

/** Returns an empty list if the server does not serve the apiVersion, such as `v1` or `apps/v1`. */
export type Discover = (apiVersion: string) => Promise<readonly DiscoveredResource[]>

export type DiscoveryOptions = { readonly url: string; readonly below?: string; readonly fetch: Fetch }

export function openDiscovery({ url, below = prefix, fetch }: DiscoveryOptions): Discover {
  const base = url.replace(/\/+$/, '') + below
  return async apiVersion => {
    const path = apiVersion.split('/').map(encodeURIComponent).join('/')
    const response = await fetch(`${base}/${apiVersion.includes('/') ? 'apis' : 'api'}/${path}`, {
      headers: { Accept: 'application/json' },
    })
    if (response.status === 404) return []
    if (!response.ok) throw await errorOf(response)
    const { resources } = (await response.json()) as { readonly resources?: readonly DiscoveredResource[] }
    if (!Array.isArray(resources)) throw new ApiError(500, 'InternalError', 'the response is not an APIResourceList')
    return resources
  }
}
