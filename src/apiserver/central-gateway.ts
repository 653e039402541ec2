// Opens the gateway inside `platform serve`: at start if it has a file, else with the first request after a cluster was connected.

import type { Duplex } from 'node:stream'
import type { ApiError } from '../api/errors.ts'
import { headTooLarge } from '../gateway/auth/bearer-token.ts'
import { Cluster } from '../kinds/cluster.ts'
import type { Request, Response } from '../serving/exchange.ts'
import type { Handle } from '../serving/listener.ts'
import type { EmbeddedGateway, EmbeddedGatewayOptions } from './embedded-gateway.ts'

export type CentralGateway = {
  /** `otherwise` handles requests while there is no gateway and no Cluster. */
  handle(request: Request, response: Response, otherwise: Handle): void
  upgrade(request: Request, socket: Duplex, head: Buffer): void
  /** Called for connections that were closed because of a protocol error. */
  broken(why: string): void
  /** The response to headers that are too large to read; undefined: the default. */
  readonly tooLarge: ApiError | undefined
  endStreams(): void
  stop(): void
}

/** Throws UsageError if the file is invalid. */
export async function openCentralGateway(options: EmbeddedGatewayOptions): Promise<CentralGateway> {
  const { file, apiServer, log } = options
  let opened: EmbeddedGateway | undefined
  let opening: Promise<EmbeddedGateway> | undefined
  let isStopped = false

  // Loaded only if needed, because it has many modules.
  async function open(): Promise<EmbeddedGateway> {
    const { openEmbeddedGateway } = await import('./embedded-gateway.ts')
    opened = await openEmbeddedGateway(options)
    if (isStopped) opened.stop()
    return opened
  }

  const openOnce = () => {
    opening ??= open().catch(error => {
      opening = undefined
      throw error
    })
    return opening
  }

  const hasClusters = async () => (await apiServer.registry.internalClient.list(Cluster, { limit: 1 })).items.length > 0
  const gatewayForClusters = async () => (opening || (await hasClusters()) ? openOnce() : undefined)
  const failed = (error: unknown) => log.error({ err: error }, 'cannot open the gateway for connected clusters')

  if (file) await openOnce()
  return {
    tooLarge: file ? headTooLarge : undefined,
    handle(request, response, otherwise) {
      if (opened) return opened.handle(request, response)
      gatewayForClusters().then(
        gateway => (gateway ? gateway.handle(request, response) : otherwise(request, response)),
        error => {
          failed(error)
          otherwise(request, response)
        },
      )
    },
    upgrade(request, socket, head) {
      if (opened) return opened.upgrade(request, socket, head)
      socket.on('error', () => socket.destroy())
      openOnce().then(
        gateway => gateway.upgrade(request, socket, head),
        error => {
          failed(error)
          socket.destroy()
        },
      )
    },
    broken: why => opened?.broken(why),
    endStreams: () => opened?.endStreams(),
    stop() {
      isStopped = true
      opened?.stop()
    },
  }
}
