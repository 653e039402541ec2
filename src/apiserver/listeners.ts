// Opens the listeners of `platform serve`: HTTPS, with the gateway if it is configured, and plain HTTP without it.

import { headTooLarge } from '../gateway/auth/bearer-token.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { isGatewayPath } from '../gateway/proxy/routes.ts'
import { requestHandler, type ServerOptions } from '../http/server.ts'
import { addressOf, isLoopback } from '../serving/address.ts'
import type { Request } from '../serving/exchange.ts'
import { listenError } from '../serving/listen-error.ts'
import { type Handle, type Listener, listenHttp, listenHttps } from '../serving/listener.ts'
import type { CertificateSource } from '../serving/tls.ts'
import type { EmbeddedGateway } from './embedded-gateway.ts'
import type { Settings } from './settings.ts'

export type Listening = {
  readonly settings: Settings
  readonly options: Omit<ServerOptions, 'loopbackOnly'>
  readonly certificates: CertificateSource | undefined
  readonly gateway: EmbeddedGateway | undefined
}

export async function listen({ settings, options, certificates, gateway }: Listening): Promise<Listener[]> {
  const handle = (loopbackOnly: boolean): Handle => {
    const handler = requestHandler({ ...options, loopbackOnly })
    return (request, response) => void handler(request, response)
  }
  /** The gateway is available over TLS only, so that tokens for clusters are not visible on the network. */
  const secure: Handle = gateway ? throughGateway(gateway, handle(false)) : handle(false)
  const upgrades = gateway && { wanted: ({ url }: Request) => isGatewayPath(url), take: gateway.upgrade }
  /** The request was not parsed, so it may contain a token for a cluster. */
  const tooLarge = gateway && headTooLarge
  const broken = gateway?.broken
  const listeners: Listener[] = []
  if (certificates)
    listeners.push(
      await listenHttps({ ...addressOf(settings.https), upgrades, tooLarge, broken }, certificates, secure).catch(
        notThere('https', settings.https),
      ),
    )
  if (settings.http !== 'off')
    listeners.push(
      await listenHttp(addressOf(settings.http), handle(isLoopback(settings.http))).catch(
        notThere('http', settings.http),
      ),
    )
  return listeners
}

const throughGateway =
  (gateway: Gateway, otherwise: Handle): Handle =>
  (request, response) =>
    isGatewayPath(request.url) ? gateway.handle(request, response) : otherwise(request, response)

const notThere = (flag: string, address: string) => (error: NodeJS.ErrnoException) => {
  throw new Error(`${listenError(address, error)}; choose another address with --${flag} HOST:PORT, or off`)
}
