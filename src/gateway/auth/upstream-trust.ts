// The trust of a standalone gateway: the issuer's keys and the revocations of the management API. A changed configuration replaces them.

import { setTimeout } from 'node:timers/promises'
import { type Io, UsageError } from '../../host/command.ts'
import { TokenRevocation } from '../../kinds/token-revocation.ts'
import type { Complaints } from '../../serving/throttled-log.ts'
import { misnamed } from '../config/preflight-probes.ts'
import type { Change } from '../config/reload-transaction.ts'
import type { GatewayConfig } from '../config/schema.ts'
import { checkServiceFiles, openService, type Service, trustedIn } from './control-plane.ts'
import { type KeySet, openKeySet } from './jwks.ts'
import type { Principal } from './principal.ts'
import { openRevocations, type Places, type Revocations } from './revocations.ts'

export interface Trust {
  /** Those of now. */
  readonly issuer: () => string
  readonly service: () => Service
  /** Grows with every change: earlier results are verified again. */
  readonly generation: () => number
  /** Resolves after the first contact with all of them. */
  readonly ready: Promise<void>
  readonly keySet: Pick<KeySet, 'keyOf' | 'losses' | 'age'>
  readonly revocations: Pick<Revocations, 'whyNot' | 'order' | 'size' | 'age'>
  /** Rejects if the new ones do not answer in time. undefined: nothing changed. */
  prepare(config: GatewayConfig): Promise<Change | undefined>
  stop(): void
  /** Ends its connections, at the very end. */
  close(): void
}

export type TrustOptions = {
  readonly file: string
  readonly io: Pick<Io, 'env' | 'now'>
  readonly failed: Complaints
  /** Called when credentials may have become invalid. */
  readonly changed: () => void
}

type Held = {
  readonly stamp: string
  readonly issuer: string
  readonly service: Service
  readonly keySet: KeySet
  readonly revocations: Revocations
}

/** The time for new ones to answer. */
const within = 10_000

export function openTrust(first: GatewayConfig, { file, io, failed, changed }: TrustOptions): Trust {
  const { now } = io
  const open = (config: GatewayConfig, told: Complaints, places?: Places): Held => {
    const service = openService(config, file, io)
    const [fetching, following] = [told('fetching the keys of the issuer'), told('following revocations')]
    return {
      stamp: stampOf(config, file),
      issuer: config.issuer?.url ?? '',
      service,
      keySet: openKeySet({ fetch: service.fetchKeys, now, failed: fetching, heard: fetching.worked }),
      revocations: openRevocations({
        resources: service.resources,
        kind: TokenRevocation,
        now,
        changed,
        failed: error => following(service.ofOwnKey(error)),
        heard: following.worked,
        ...(places ? { places } : {}),
      }),
    }
  }
  const stop = ({ keySet, revocations }: Held) => {
    keySet.stop()
    revocations.stop()
  }
  const left = new Set<Service>()
  const leave = (service: Service) => {
    if (left.delete(service)) service.close()
  }
  let held = open(first, failed)
  let losses = 0
  let generation = 0
  let preparing: (() => void) | undefined
  let isReady: () => void = () => {}
  const ready = new Promise<void>(resolve => {
    isReady = resolve
  })
  const hear = ({ keySet, revocations }: Held) => Promise.all([keySet.ready, revocations.ready])
  void hear(held).then(() => isReady())

  return {
    issuer: () => held.issuer,
    service: () => held.service,
    generation: () => generation,
    ready,
    keySet: {
      keyOf: id => held.keySet.keyOf(id),
      get losses() {
        return losses + held.keySet.losses
      },
      age: () => held.keySet.age(),
    },
    revocations: {
      whyNot: principal => issuerChanged(held, principal) ?? held.revocations.whyNot(principal),
      get order() {
        return held.revocations.order
      },
      get size() {
        return held.revocations.size
      },
      age: () => held.revocations.age(),
    },
    async prepare(config) {
      const problems = checkServiceFiles(config, file)
      if (problems.length) throw new UsageError(problems)
      if (stampOf(config, file) === held.stamp) return undefined
      let why: unknown
      let isUsed = false
      const told: Complaints = what => {
        const complain = failed(what)
        const hold = (error: unknown) => {
          if (isUsed) complain(error)
          else why = error
        }
        return Object.assign(hold, { worked: complain.worked })
      }
      const next = open(config, told, held.revocations.places)
      const before = held
      /** Results of the other generation are verified again. */
      const put = (one: Held) => {
        losses += held.keySet.losses + 1
        generation++
        held = one
      }
      const drop = () => {
        preparing = undefined
        if (held === next) put(before)
        stop(next)
        held.revocations.forget()
        next.service.close()
      }
      preparing = drop
      const late = new AbortController()
      const end = setTimeout(within, 'late', { ref: false, signal: late.signal }).catch(() => 'late')
      const heard = await Promise.race([hear(next), end])
      late.abort()
      if (heard === 'late') {
        drop()
        const reason = why instanceof Error ? `: ${why.message}` : ''
        throw new UsageError([
          `${file}: issuer, service: ${next.service.url} did not answer within ${within / 1000} s${reason}`,
        ])
      }
      const wrong = misnamed(config, await next.service.fetchMetadata().catch(() => undefined))
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
          held.revocations.forget()
          // Requests in flight still get their answer.
          left.add(before.service)
          void setTimeout(within, undefined, { ref: false }).then(() => leave(before.service))
          changed()
        },
      }
    },
    stop() {
      preparing?.()
      stop(held)
    },
    close() {
      for (const service of left) leave(service)
      held.service.close()
    },
  }
}

/** Whose word is not asked for any more cannot take it back either: so it does not count. */
function issuerChanged({ issuer, service }: Held, { jti, from }: Principal): string | undefined {
  if (jti === undefined) return from === service.url ? undefined : 'another management API reviews access keys now'
  return from === issuer ? undefined : 'its issuer is not the one of this gateway any more'
}

const stampOf = (config: GatewayConfig, file: string) =>
  JSON.stringify([config.issuer, config.service, trustedIn(config, file)])
