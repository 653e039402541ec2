// Opens the listeners of `platform serve`: HTTPS with the gateway, and plain HTTP without it.

import { isGatewayPath } from '../gateway/proxy/routes.ts'
import { requestHandler, type ServerOptions } from '../http/server.ts'
import { addressOf, isLoopback } from '../serving/address.ts'
import type { Request } from '../serving/exchange.ts'
import { listenError } from '../serving/listen-error.ts'
import { type Handle, type Listener, listenHttp, listenHttps } from '../serving/listener.ts'
import type { CertificateSource } from '../serving/tls.ts'
import type { CentralGateway } from './central-gateway.ts'
import type { Settings } from './settings.ts'

export type Listening = {
  readonly settings: Settings
  readonly options: Omit<ServerOptions, 'loopbackOnly'>
  readonly certificates: CertificateSource | undefined
  readonly gateway: CentralGateway
}

export async function listen({ settings, options, certificates, gateway }: Listening): Promise<Listener[]> {
  const handle = (loopbackOnly: boolean): Handle => {
    const handler = requestHandler({ ...options, loopbackOnly })
    return (request, response) => void handler(request, response)
  }
  /** The gateway is available over TLS only, so that tokens for clusters are not visible on the network. */
  const secure = throughGateway(gateway, handle(false))
  const upgrades = { wanted: ({ url }: Request) => isGatewayPath(url), take: gateway.upgrade }
  const { tooLarge, broken } = gateway
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
  (gateway: CentralGateway, otherwise: Handle): Handle =>
  (request, response) =>
    isGatewayPath(request.url) ? gateway.handle(request, response, otherwise) : otherwise(request, response)

const notThere = (flag: string, address: string) => (error: NodeJS.ErrnoException) => {
  throw new Error(`${listenError(address, error)}; choose another address with --${flag} HOST:PORT, or off`)
}
