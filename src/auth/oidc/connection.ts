// The connection to a provider: its metadata and its keys. It outlives a change of other fields in auth.yaml.

import { type IssuerKeys, openIssuerKeys } from '../jwt/issuer-keys.ts'
import { openDiscovery } from './discovery.ts'
import type { LoginConfig } from './login-config.ts'
import { fetchDocument, fetchJson, type ProviderHttp } from './provider-http.ts'

export type Connection = {
  readonly http: ProviderHttp
  readonly metadata: ReturnType<typeof openDiscovery>['metadata']
  /** Fetches the keys with the first call. */
  keys(): IssuerKeys
  stop(): void
}

export type ConnectionOptions = {
  readonly http: ProviderHttp
  readonly now: () => number
  readonly failed: (error: unknown) => void
  readonly worked: () => void
}

export function openConnection(
  { url, discoveryURL }: Pick<LoginConfig, 'url' | 'discoveryURL'>,
  { http, now, failed, worked }: ConnectionOptions,
): Connection {
  const discovery = openDiscovery({
    url,
    discoveryURL,
    fetchDocument: address => fetchDocument(http, address),
    now,
    failed,
    worked,
  })
  let keys: IssuerKeys | undefined
  return {
    http,
    metadata: discovery.metadata,
    keys() {
      // Later than the metadata: a provider that was down until then would make the first sign-in wait for a retry.
      keys ??= openIssuerKeys({
        url,
        discoveryURL,
        fetchJson: address => fetchJson(http, address),
        close: () => {},
        now,
        failed,
        worked,
        withdrawn: () => {},
      })
      return keys
    },
    stop() {
      keys?.stop()
      http.close()
    },
  }
}

export const isSameConnection = (one: LoginConfig, other: LoginConfig) =>
  one.name === other.name && one.url === other.url && one.discoveryURL === other.discoveryURL && one.ca === other.ca
