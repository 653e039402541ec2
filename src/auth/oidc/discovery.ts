// The metadata of a provider: fetched when it is needed, and kept while the provider is unreachable.

import type { ServerMetadata } from 'openid-client'
import type { JsonObject } from '../../api/object.ts'
import { algorithms } from '../jwt/issuer-keys.ts'
import { urlProblem } from '../jwt/issuer-rules.ts'
import { ProviderError } from './provider-error.ts'

export type Discovery = {
  /** Throws the error of the last attempt if there is no metadata yet. */
  metadata(): Promise<ServerMetadata>
}

export type DiscoveryOptions = {
  readonly url: string
  readonly discoveryURL: string
  readonly fetchDocument: (url: string) => Promise<JsonObject>
  readonly now: () => number
  readonly failed: (error: unknown) => void
  readonly worked: () => void
}

const refreshAfter = 300_000
/** Sign-in attempts cause at most one failing request in this time. */
const retryAfter = 1000

export function openDiscovery(options: DiscoveryOptions): Discovery {
  const { url, discoveryURL, fetchDocument, now, failed, worked } = options
  let known: ServerMetadata | undefined
  let error: unknown
  let attempted = Number.NEGATIVE_INFINITY
  let fetching: Promise<void> | undefined

  const update = async () => {
    try {
      known = metadataOf(await fetchDocument(discoveryURL), url, discoveryURL)
      error = undefined
      worked()
    } catch (reason) {
      error = reason
      failed(reason)
    }
    attempted = now()
  }
  /** One at a time. */
  const refresh = () => {
    fetching ??= update().finally(() => {
      fetching = undefined
    })
    return fetching
  }
  return {
    async metadata() {
      const isDue = now() - attempted >= (error === undefined ? refreshAfter : retryAfter)
      // Known metadata is used while a request updates it.
      const refreshing = isDue || fetching ? refresh() : undefined
      if (!known) await refreshing
      if (known) return known
      throw error
    },
  }
}

const optionalEndpoints = ['userinfo_endpoint', 'end_session_endpoint'] as const

/** Only the fields that we use, so that no other field changes what openid-client does. */
function metadataOf(document: JsonObject, url: string, from: string): ServerMetadata {
  const invalid = (message: string) => new ProviderError('InvalidResponse', message)
  if (document['issuer'] !== url)
    throw invalid(`${from} describes another issuer; issuer.url must be equal to its field issuer`)
  const endpoint = (field: string, isRequired: boolean): string | undefined => {
    const value = document[field]
    if (value === undefined && !isRequired) return undefined
    // A remote provider must not make the server send requests to its own host.
    const isLocal = url.startsWith('http:')
    if (typeof value !== 'string' || urlProblem(value) || (value.startsWith('http:') && !isLocal))
      throw invalid(`the ${field} in ${from} is missing or invalid`)
    return value
  }
  const strings = (field: string): string[] | undefined => {
    const value = document[field]
    return Array.isArray(value) ? value.filter(one => typeof one === 'string') : undefined
  }
  const optional = optionalEndpoints.flatMap(field => {
    const value = endpoint(field, false)
    return value === undefined ? [] : [[field, value] as const]
  })
  const [methods, scopes] = [strings('token_endpoint_auth_methods_supported'), strings('scopes_supported')]
  return {
    issuer: url,
    authorization_endpoint: endpoint('authorization_endpoint', true) as string,
    token_endpoint: endpoint('token_endpoint', true) as string,
    ...Object.fromEntries(optional),
    ...(methods ? { token_endpoint_auth_methods_supported: methods } : {}),
    ...(scopes ? { scopes_supported: scopes } : {}),
    authorization_response_iss_parameter_supported: document['authorization_response_iss_parameter_supported'] === true,
    id_token_signing_alg_values_supported: [...algorithms],
  }
}
