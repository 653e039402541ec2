// Deletes TokenRevocations that concern nothing any more (D33): no token from before can be alive, or one about all keys of an owner covers it.

import { ignoreConflict } from '../api/errors.ts'
import type { Resource } from '../api/object.ts'
import type { Resources } from '../api/resources.ts'
import { ownerLabel, ownerRevocationName } from '../kinds/merged-revocation.ts'
import { TokenRevocation } from '../kinds/token-revocation.ts'
import { startInformer } from '../reconcile/informer.ts'
import { startLoop } from '../reconcile/work-queue.ts'

export type RevocationSweepOptions = {
  readonly resources: Resources
  readonly now: () => number
  readonly failed: (what: string, error: unknown) => void
}

type Revocation = {
  readonly resourceVersion: string
  readonly notBefore: number
  readonly until: number
  readonly tokensOnly: boolean
  /** The label of one about an access key. */
  readonly owner: string | undefined
}

export function startRevocationSweep({ resources, now, failed }: RevocationSweepOptions): {
  readonly ready: Promise<void>
  /** Resolves when every revocation was looked at. */
  idle(): Promise<void>
  stop(): Promise<void>
} {
  /** Names of those about access keys, by their owner. */
  const byOwner = new Map<string, Set<string>>()
  const informer = startInformer({
    resources,
    kind: TokenRevocation,
    keep: read,
    changed: ({ name }, one, before) => {
      if (before) forget(name, before)
      if (!one) return
      if (one.owner !== undefined) byOwner.set(one.owner, (byOwner.get(one.owner) ?? new Set()).add(name))
      loop.add(name)
      const owner = name.startsWith(ofOwners) ? name.slice(ofOwners.length) : undefined
      for (const covered of byOwner.get(owner ?? '') ?? []) loop.add(covered)
    },
    failed: error => failed('watching revocations', error),
  })
  const loop = startLoop({
    reconcile: async name => {
      const one = informer.get({ namespace: '', name })
      if (!one) return undefined
      const left = one.until - now()
      if (Number.isNaN(left)) return undefined
      if (left > 0 && !isCovered(one)) return left
      // One that was merged since stays: it has another version.
      const preconditions = { resourceVersion: one.resourceVersion }
      await resources.delete(TokenRevocation, { namespace: '', name }, { preconditions }).catch(ignoreConflict)
      return undefined
    },
    failed: (name, error) => failed(`sweeping revocation "${name}"`, error),
  })

  function forget(name: string, { owner = '' }: Revocation): void {
    const names = byOwner.get(owner)
    names?.delete(name)
    if (names?.size === 0) byOwner.delete(owner)
  }

  /** A gateway ends what access keys opened before a revocation was written, so the covering one must be the later write. */
  function isCovered({ owner, notBefore, until, tokensOnly, resourceVersion }: Revocation): boolean {
    const whole = owner === undefined ? undefined : informer.get({ namespace: '', name: ownerRevocationName(owner) })
    if (!whole || whole.notBefore < notBefore || whole.until < until) return false
    return tokensOnly || Number(whole.resourceVersion) > Number(resourceVersion)
  }

  return {
    ready: informer.ready,
    idle: loop.idle,
    async stop() {
      informer.stop()
      await loop.stop()
    },
  }
}

const ofOwners = ownerRevocationName('')

function read({ metadata, spec = {} }: Resource): Revocation {
  const { notBefore, until, keyUID, tokensOnly } = spec as { [name: string]: unknown }
  const isAboutKey = metadata.name === `revoked-key-${keyUID}`
  return {
    resourceVersion: metadata.resourceVersion ?? '',
    notBefore: Date.parse(String(notBefore)),
    until: Date.parse(String(until)),
    tokensOnly: tokensOnly === true,
    owner: isAboutKey ? metadata.labels?.[ownerLabel] : undefined,
  }
}
