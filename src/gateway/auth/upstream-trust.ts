// The trust of a standalone gateway: the issuer's keys and the revocations of the management API. A changed configuration replaces them.

import { setTimeout } from 'node:timers/promises'
import { type Io, UsageError } from '../../host/command.ts'
import { TokenRevocation } from '../../kinds/token-revocation.ts'
import type { ThrottledLog } from '../../serving/throttled-log.ts'
import { issuerMismatch } from '../config/preflight-probes.ts'
import type { Change } from '../config/reload-transaction.ts'
import type { GatewayConfig } from '../config/schema.ts'
import { checkServiceFiles, openService, type Service, trustedIn } from './control-plane.ts'
import { type KeySet, openKeySet } from './jwks.ts'
import type { Principal } from './principal.ts'
import { openRevocations, type Revocations, type SequenceNumbers } from './revocations.ts'

export interface Trust {
  /** The current issuer and management API. */
  readonly issuer: () => string
  readonly service: () => Service
  /** Grows with every change: earlier results are verified again. */
  readonly generation: () => number
  /** Resolves after the first contact with all of them. */
  readonly ready: Promise<void>
  readonly keySet: Pick<KeySet, 'keyOf' | 'keyChanges' | 'age'>
  readonly revocations: Pick<Revocations, 'revokedReason' | 'order' | 'size' | 'age'>
  /** Rejects if the new issuer or management API does not respond in time. undefined: nothing changed. */
  prepare(config: GatewayConfig): Promise<Change | undefined>
  stop(): void
  /** Closes the connections. Call it last. */
  close(): void
}

export type TrustOptions = {
  readonly file: string
  readonly io: Pick<Io, 'env' | 'now'>
  readonly failed: ThrottledLog
  /** Called when credentials may have become invalid. */
  readonly changed: () => void
}

type TrustState = {
  readonly stamp: string
  readonly issuer: string
  readonly service: Service
  readonly keySet: KeySet
  readonly revocations: Revocations
}

/** Time limit for a new issuer and management API to respond. */
const within = 10_000

export function openTrust(first: GatewayConfig, { file, io, failed, changed }: TrustOptions): Trust {
  const { now } = io
  const open = (config: GatewayConfig, log: ThrottledLog, sequenceNumbers?: SequenceNumbers): TrustState => {
    const service = openService(config, file, io)
    const [fetching, following] = [log('fetching the signing keys of the issuer'), log('watching revocations')]
    return {
      stamp: stampOf(config, file),
      issuer: config.issuer?.url ?? '',
      service,
      keySet: openKeySet({ fetch: service.fetchKeys, now, failed: fetching, contacted: fetching.worked }),
      revocations: openRevocations({
        resources: service.resources,
        kind: TokenRevocation,
        now,
        changed,
        failed: error => following(service.ofOwnKey(error)),
        contacted: following.worked,
        ...(sequenceNumbers ? { sequenceNumbers } : {}),
      }),
    }
  }
  const stop = ({ keySet, revocations }: TrustState) => {
    keySet.stop()
    revocations.stop()
  }
  const retired = new Set<Service>()
  const closeRetired = (service: Service) => {
    if (retired.delete(service)) service.close()
  }
  let current = open(first, failed)
  let losses = 0
  let generation = 0
  let preparing: (() => void) | undefined
  let isReady: () => void = () => {}
  const ready = new Promise<void>(resolve => {
    isReady = resolve
  })
  const firstContact = ({ keySet, revocations }: TrustState) => Promise.all([keySet.ready, revocations.ready])
  void firstContact(current).then(() => isReady())

  return {
    issuer: () => current.issuer,
    service: () => current.service,
    generation: () => generation,
    ready,
    keySet: {
      keyOf: id => current.keySet.keyOf(id),
      get keyChanges() {
        return losses + current.keySet.keyChanges
      },
      age: () => current.keySet.age(),
    },
    revocations: {
      revokedReason: principal => issuerChanged(current, principal) ?? current.revocations.revokedReason(principal),
      get order() {
        return current.revocations.order
      },
      get size() {
        return current.revocations.size
      },
      age: () => current.revocations.age(),
    },
    async prepare(config) {
      const problems = checkServiceFiles(config, file)
      if (problems.length) throw new UsageError(problems)
      if (stampOf(config, file) === current.stamp) return undefined
      let why: unknown
      let isUsed = false
      const log: ThrottledLog = what => {
        const report = failed(what)
        const hold = (error: unknown) => {
          if (isUsed) report(error)
          else why = error
        }
        return Object.assign(hold, { worked: report.worked })
      }
      const next = open(config, log, current.revocations.sequenceNumbers)
      const before = current
      /** Results of the other generation are verified again. */
      const put = (one: TrustState) => {
        losses += current.keySet.keyChanges + 1
        generation++
        current = one
      }
      const drop = () => {
        preparing = undefined
        if (current === next) put(before)
        stop(next)
        current.revocations.forget()
        next.service.close()
      }
      preparing = drop
      const late = new AbortController()
      const end = setTimeout(within, 'late', { ref: false, signal: late.signal }).catch(() => 'late')
      const outcome = await Promise.race([firstContact(next), end])
      late.abort()
      if (outcome === 'late') {
        drop()
        const reason = why instanceof Error ? `: ${why.message}` : ''
        throw new UsageError([
          `${file}: issuer, service: ${next.service.url} did not respond within ${within / 1000} s${reason}`,
        ])
      }
      const wrong = issuerMismatch(config, await next.service.fetchMetadata().catch(() => undefined))
      if (wrong) {
        drop()
        throw new UsageError([`${file}: ${wrong}`])
      }
      return {
        drop,
        use: () => put(next),
        done() {
          preparing = undefined
          isUsed = true
          isReady()
          stop(before)
          current.revocations.forget()
          // Requests in flight still get their response.
          retired.add(before.service)
          void setTimeout(within, undefined, { ref: false }).then(() => closeRetired(before.service))
          changed()
        },
      }
    },
    stop() {
      preparing?.()
      stop(current)
    },
    close() {
      for (const service of retired) closeRetired(service)
      current.service.close()
    },
  }
}

/** The gateway no longer gets revocations from a previous issuer or management API, so their credentials are invalid. */
function issuerChanged({ issuer, service }: TrustState, { jti, from }: Principal): string | undefined {
  if (jti === undefined) return from === service.url ? undefined : 'the gateway now uses another management API'
  return from === issuer ? undefined : 'the gateway no longer trusts its issuer'
}

const stampOf = (config: GatewayConfig, file: string) =>
  JSON.stringify([config.issuer, config.service, trustedIn(config, file)])
