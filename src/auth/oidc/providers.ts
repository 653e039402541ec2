// The providers of auth.yaml, replaced when the file changes.

import { type Connection, type ConnectionOptions, isSameConnection, openConnection } from './connection.ts'
import type { LoginConfig } from './login-config.ts'
import { openProvider, type Provider, type Providers } from './provider.ts'
import type { ProviderHttp } from './provider-http.ts'

export type ProvidersOptions = {
  readonly now: () => number
  readonly openHttp: (config: LoginConfig) => ProviderHttp
  /** The log of requests that fail and work again. */
  readonly watch: (config: LoginConfig) => Pick<ConnectionOptions, 'failed' | 'worked'>
  readonly droppedGroups: (provider: string, count: number) => void
}

export function openProviders({ now, openHttp, watch, droppedGroups }: ProvidersOptions): Providers {
  let current = new Map<string, { readonly provider: Provider; readonly connection: Connection }>()
  const connect = (config: LoginConfig): Connection => {
    const connection = openConnection(config, { http: openHttp(config), now, ...watch(config) })
    // Only for the log, so that an operator sees a wrong URL before anybody signs in.
    connection.metadata().catch(() => {})
    return connection
  }
  return {
    list: () => [...current.values()].map(({ provider }) => provider),
    get: name => current.get(name)?.provider,
    use(configs) {
      const before = [...current.values()]
      current = new Map(
        configs.map(config => {
          const same = before.find(({ provider }) => isSameConnection(provider.config, config))
          const connection = same?.connection ?? connect(config)
          const options = { connection, now, droppedGroups: (count: number) => droppedGroups(config.name, count) }
          return [config.name, { provider: openProvider(config, options), connection }]
        }),
      )
      const kept = new Set([...current.values()].map(({ connection }) => connection))
      for (const { connection } of before) if (!kept.has(connection)) connection.stop()
    },
    stop() {
      for (const { connection } of current.values()) connection.stop()
    },
  }
}
