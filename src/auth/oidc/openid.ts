// Configures openid-client for a provider: client authentication, clock, time limits, and requests over our connections.

import {
  allowInsecureRequests,
  ClientSecretBasic,
  ClientSecretPost,
  Configuration,
  clockSkew,
  clockTolerance,
  customFetch,
  None,
  type ServerMetadata,
} from 'openid-client'
import { leeway } from '../jwt/verify.ts'
import type { LoginConfig } from './login-config.ts'
import { fetchOver, type ProviderHttp } from './provider-http.ts'

export type OpenidOptions = {
  readonly metadata: ServerMetadata
  readonly http: ProviderHttp
  readonly now: () => number
}

/** One per request, because the library reads the clock of the system and only knows a constant difference to ours. */
export function openidFor(config: LoginConfig, { metadata, http, now }: OpenidOptions): Configuration {
  const client = { [clockSkew]: Math.round((now() - Date.now()) / 1000), [clockTolerance]: leeway }
  const openid = new Configuration(metadata, config.clientID, client, authenticationOf(config, metadata))
  openid[customFetch] = fetchOver(http)
  // The connection has its own time limit.
  openid.timeout = undefined
  // The configuration allows http only for loopback addresses.
  if (config.url.startsWith('http:')) allowInsecureRequests(openid)
  return openid
}

/** Basic authentication is the default of OpenID Connect Discovery. Entra ID supports only the other one. */
function authenticationOf(config: LoginConfig, metadata: ServerMetadata) {
  const clientSecret = config.clientSecret()
  if (clientSecret === undefined) return None()
  const { token_endpoint_auth_methods_supported: methods = ['client_secret_basic'] } = metadata
  const isPost = methods.includes('client_secret_post') && !methods.includes('client_secret_basic')
  return isPost ? ClientSecretPost(clientSecret) : ClientSecretBasic(clientSecret)
}
