// Verifications that wait for the keys of an issuer: each token once, and bounded per issuer and client, so that none blocks the others.

import { tooManyRequests } from '../../api/errors.ts'
import { JwtError, parse } from './verify.ts'

/** Verifications that wait for keys: in total, of one issuer, and of one client. */
const maxPending = { total: 256, issuer: 64, address: 32 } as const

export interface PendingVerifications {
  /** Joins a running verification, or starts one. Rejects with 429 if too many wait. `address`: '' is not limited. */
  run(sent: SentToken, verify: () => Promise<void>): Promise<void>
}

export type SentToken = { readonly token: string; readonly digest: string; readonly address: string }

export function openPendingVerifications(): PendingVerifications {
  const pending = new Map<string, Promise<void>>()
  const waiting = openCounts()
  return {
    run({ token, digest, address }, verify) {
      const running = pending.get(digest)
      if (running) return running
      const [atIssuer, ofAddress] = [`issuer ${issuerIn(token)}`, `address ${address}`]
      if (
        pending.size >= maxPending.total ||
        waiting.of(atIssuer) >= maxPending.issuer ||
        (address !== '' && waiting.of(ofAddress) >= maxPending.address)
      )
        return Promise.reject(tooManyRequests())
      const leave = waiting.enter([atIssuer, ofAddress])
      const work = verify().finally(() => {
        pending.delete(digest)
        leave()
      })
      pending.set(digest, work)
      return work
    },
  }
}

/** The issuer that a token names, without verification; '': none, which no waiting follows. */
function issuerIn(token: string): string {
  try {
    const { iss } = parse(token).claims
    return typeof iss === 'string' ? iss : ''
  } catch (error) {
    if (error instanceof JwtError) return ''
    throw error
  }
}

/** Counts by name. */
function openCounts() {
  const counts = new Map<string, number>()
  const add = (name: string, by: number) => {
    const next = (counts.get(name) ?? 0) + by
    if (next > 0) counts.set(name, next)
    else counts.delete(name)
  }
  return {
    of: (name: string) => counts.get(name) ?? 0,
    enter(names: readonly string[]): () => void {
      for (const name of names) add(name, 1)
      return () => {
        for (const name of names) add(name, -1)
      }
    },
  }
}
