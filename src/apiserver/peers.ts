// Connects this replica with the others: reads their audit logs, and answers them.

import { tooManyRequests } from '../api/errors.ts'
import type { AuditSource, ScanLog } from '../serving/audit-pages.ts'
import type { UnknownKeyLimiter } from '../serving/unknown-key-limiter.ts'
import type { Sealer } from '../storage/encryption.ts'
import type { Replica, Replicas } from '../storage/storage.ts'
import { openTransport, type Transport } from '../transport/transport.ts'
import { sealsFor } from './encryption.ts'
import {
  auditScanPath,
  maxResponseBytes,
  openPeerEndpoint,
  type PeerEndpoint,
  type ScanResponse,
} from './peer-endpoint.ts'
import { openPeerMessages } from './peer-messages.ts'

const answerWithin = 5000

export type PeersOptions = {
  readonly replicas: Replicas
  /** The id of this replica. */
  readonly id: string
  readonly sealer: Sealer
  /** The CA of the replicas; undefined: those of the machine. */
  readonly ca: string | undefined
  /** Reads the audit log of this replica. */
  readonly scan: ScanLog
  readonly guard: UnknownKeyLimiter
  readonly now: () => number
}

export type Peers = {
  readonly endpoint: PeerEndpoint
  /** The audit logs of the other replicas. */
  sources(): readonly AuditSource[]
  close(): void
}

export function openPeers({ replicas, id: self, sealer, ca, scan, guard, now }: PeersOptions): Peers {
  const messages = openPeerMessages({ seals: sealsFor(sealer, 'peer'), self, now })
  const transports = new Map<string, Transport>()

  function transportTo(url: string): Transport {
    const known = transports.get(url)
    if (known) return known
    const access = { server: url, namespace: '', insecure: false, ...(ca === undefined ? {} : { ca: { text: ca } }) }
    // Without a proxy: replicas reach each other directly.
    const limits = { answerWithin, quietFor: answerWithin, maxBytes: maxResponseBytes, caIs: 'tlsCa' }
    const opened = openTransport(access, { env: {}, now, ...limits })
    transports.set(url, opened)
    return opened
  }

  replicas.onChange(() => {
    const urls = new Set(replicas.others().map(({ url }) => url))
    for (const [url, transport] of transports) {
      if (urls.has(url)) continue
      transports.delete(url)
      transport.close()
    }
  })

  const scanOf =
    ({ id, url, isRunning }: Replica): ScanLog =>
    async search => {
      if (!isRunning) return { unreadable: 'the replica does not run' }
      if (url === '') return { unreadable: 'the replica has no https URL; set replica.url' }
      const request = messages.request(id, search)
      const response = await transportTo(url).fetch(url + auditScanPath, {
        method: 'POST',
        headers: { 'Content-Type': 'application/octet-stream', 'Content-Length': String(request.text.length) },
        body: request.text,
        signal: AbortSignal.timeout(answerWithin),
      })
      const text = await response.text()
      const answer = messages.openResponse(id, request.id, text) as ScanResponse | undefined
      if (!answer) return { unreadable: `${url} answered ${response.status}; ${check}` }
      if ('busy' in answer) throw tooManyRequests()
      return answer
    }

  return {
    endpoint: openPeerEndpoint({ messages, scan, guard }),
    sources: () => replicas.others().map(one => ({ id: one.id, name: one.url || one.id, scan: scanOf(one) })),
    close() {
      for (const transport of transports.values()) transport.close()
    },
  }
}

const check =
  'check that replica.url leads to this replica, and that all replicas have the same master key and the same time'
