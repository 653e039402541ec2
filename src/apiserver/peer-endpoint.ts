// Answers other replicas that read the audit log of this one. The server treats all other requests like those to any unknown path.

import { setTimeout } from 'node:timers/promises'
import { readBytes } from '../http/body.ts'
import type { ScanLog } from '../serving/audit-pages.ts'
import type { Scan } from '../serving/audit-scan.ts'
import type { Exchange } from '../serving/exchange.ts'
import type { Answer } from '../serving/respond.ts'
import type { UnknownKeyLimiter } from '../serving/unknown-key-limiter.ts'
import type { PeerMessages } from './peer-messages.ts'

export const auditScanPath = '/internal/audit-scan'
export const maxResponseBytes = 1024 * 1024

const [maxRequestBytes, bodyWithin, maxScans] = [64 * 1024, 5000, 64]

/** The response to a replica. `busy`: it has to try again later. */
export type ScanResponse = Awaited<ReturnType<ScanLog>> | { readonly busy: true }

/** Undefined: not a request of a replica. */
export type PeerEndpoint = (exchange: Exchange) => Promise<Answer | undefined> | undefined

export function openPeerEndpoint(options: {
  readonly messages: PeerMessages
  readonly scan: ScanLog
  readonly guard: Pick<UnknownKeyLimiter, 'addressOf' | 'failed'>
}): PeerEndpoint {
  const { messages, scan, guard } = options
  let scans = 0

  async function run(search: Scan): Promise<ScanResponse> {
    if (scans >= maxScans) return { busy: true }
    scans++
    try {
      return await scan(search)
    } finally {
      scans--
    }
  }

  async function answer(exchange: Exchange): Promise<Answer | undefined> {
    const text = await bodyOf(exchange)
    const request = text === undefined ? undefined : messages.openRequest(text)
    if (!request) {
      guard.failed(guard.addressOf(exchange.request))
      return undefined
    }
    const sealed = messages.response(request.id, await run(request.value as Scan))
    const isTooLarge = sealed.length > maxResponseBytes
    const sent = isTooLarge ? messages.response(request.id, { unreadable: 'a part of it is too large' }) : sealed
    return { code: 200, type: 'application/octet-stream', body: Buffer.from(sent) }
  }

  return exchange => (exchange.path === auditScanPath && exchange.method === 'POST' ? answer(exchange) : undefined)
}

/** Undefined: too large, too slow, or incomplete. */
async function bodyOf(exchange: Exchange): Promise<string | undefined> {
  const ending = new AbortController()
  const late = setTimeout(bodyWithin, undefined, { signal: ending.signal, ref: false }).catch(() => undefined)
  const body = readBytes(exchange, maxRequestBytes).then(
    bytes => bytes.toString('latin1'),
    () => undefined,
  )
  const text = await Promise.race([body, late])
  ending.abort()
  return text
}
