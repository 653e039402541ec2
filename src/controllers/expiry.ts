// Sweeps access keys a day after they expired (D18).

import type { Resource } from '../api/object.ts'
import type { Resources } from '../api/resources.ts'
import { OwnedAccessKey } from '../kinds/owned-access-key.ts'
import { mentions, startInformer } from '../reconcile/informer.ts'
import { startLoop } from '../reconcile/loop.ts'

export type ExpiryOptions = {
  readonly resources: Resources
  readonly now: () => number
  readonly lastActivity: (uid: string) => number | undefined
  readonly failed: (what: string, error: unknown) => void
}

const day = 24 * 3600 * 1000

export function startExpiry({ resources, now, lastActivity, failed }: ExpiryOptions): {
  readonly ready: Promise<void>
  stop(): Promise<void>
} {
  const loop = startLoop({
    reconcile: async name => {
      const key = informer.get({ namespace: '', name })
      const ends = key && endOf(key, lastActivity)
      if (!key || ends === undefined) return undefined
      const left = ends + day - now()
      // Timers do not reach further than 24 days; a look a day is enough.
      if (left > 0) return Math.min(left, day)
      await resources.delete(
        OwnedAccessKey,
        { namespace: '', name },
        { preconditions: { uid: key.metadata.uid ?? '' } },
      )
      return undefined
    },
    failed: (name, error) => failed(`sweeping access key ${name}`, error),
  })
  const informer = startInformer({
    resources,
    kind: OwnedAccessKey,
    counts: mentions('ttl'),
    keep: object => object,
    failed: error => failed('following access keys', error),
    changed: ({ name }, key) => {
      if (key && endOf(key, lastActivity) !== undefined) loop.add(name)
    },
  })
  return {
    ready: informer.ready,
    async stop() {
      informer.stop()
      await loop.stop()
    },
  }
}

function endOf(
  { metadata, spec = {}, status = {} }: Resource,
  lastActivity: (uid: string) => number | undefined,
): number | undefined {
  const { ttl, ttlAfterLastActivity } = spec as { ttl?: number; ttlAfterLastActivity?: boolean }
  if (!ttl) return undefined
  const { rotatedAt } = status as { rotatedAt?: string }
  const since = Date.parse(rotatedAt ?? metadata.creationTimestamp ?? '')
  return (ttlAfterLastActivity ? (lastActivity(metadata.uid ?? '') ?? since) : since) + ttl * 1000
}
