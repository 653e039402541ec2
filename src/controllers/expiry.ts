// Deletes access keys a day after they expired (D18), and exchanged ones sooner. Keeps a sign-in that has ended while other keys depend on it (D66).

import type { Resource } from '../api/object.ts'
import type { Resources } from '../api/resources.ts'
import { keyExpiry } from '../kinds/key-expiry.ts'
import { loginFinalizer, sessionRecordOf } from '../kinds/login-session.ts'
import { machineKeyKeptFor, machineRecordOf } from '../kinds/machine-key.ts'
import { OwnedAccessKey } from '../kinds/owned-access-key.ts'
import { mentions } from '../reconcile/document-words.ts'
import { startInformer } from '../reconcile/informer.ts'
import { startLoop } from '../reconcile/work-queue.ts'

export type ExpiryOptions = {
  readonly resources: Resources
  readonly now: () => number
  readonly lastActivity: (uid: string) => number | undefined
  /** Most seconds a key may live; absent: any. */
  readonly maxTTL?: number | undefined
  /** Whether a valid key depends on the sign-in with this uid. */
  readonly hasDependents: (uid: string) => boolean
  readonly failed: (what: string, error: unknown) => void
}

const day = 24 * 3600 * 1000
/** How often a sign-in is checked that is kept for other keys. */
const keptFor = 600_000

export function startExpiry({ resources, now, lastActivity, maxTTL, hasDependents, failed }: ExpiryOptions): {
  readonly ready: Promise<void>
  /** Resolves when every key was looked at. */
  idle(): Promise<void>
  stop(): Promise<void>
} {
  const endOf = (key: Resource): number | undefined => {
    const { metadata, spec = {}, status = {} } = key
    const { ttl: own, ttlAfterLastActivity: slides } = spec as { ttl?: number; ttlAfterLastActivity?: boolean }
    const ttl = Math.min(own || Number.POSITIVE_INFINITY, maxTTL ?? Number.POSITIVE_INFINITY)
    if (ttl === Number.POSITIVE_INFINITY) return undefined
    const { rotatedAt } = status as { rotatedAt?: string }
    const since = Date.parse(rotatedAt ?? metadata.creationTimestamp ?? '')
    const used = () => lastActivity(metadata.uid ?? '')
    const idle = sessionRecordOf(key)?.idle ?? Number.POSITIVE_INFINITY
    const end = keyExpiry({ since, ttl: ttl * 1000, slides: slides === true }, used)
    return Math.min(end, Math.max(since, used() ?? 0) + idle * 1000)
  }
  const release = async ({ metadata }: Resource): Promise<void> => {
    const finalizers = metadata.finalizers?.filter(one => one !== loginFinalizer) ?? []
    const body = { metadata: { finalizers, uid: metadata.uid ?? '', resourceVersion: metadata.resourceVersion ?? '' } }
    const ref = { namespace: '', name: metadata.name ?? '' }
    await resources.patch(OwnedAccessKey, ref, { type: 'merge', body }, { fieldManager: 'platform' })
  }
  const loop = startLoop({
    reconcile: async name => {
      const key = informer.get({ namespace: '', name })
      const ends = key && endOf(key)
      if (!key || ends === undefined) return undefined
      const isHeld = key.metadata.finalizers?.includes(loginFinalizer) === true
      const isKept = isHeld && hasDependents(key.metadata.uid ?? '')
      if (key.metadata.deletionTimestamp !== undefined) {
        if (isHeld && !isKept) await release(key)
        return isKept ? keptFor : undefined
      }
      const left = ends + (machineRecordOf(key) ? machineKeyKeptFor * 1000 : day) - now()
      // Timers do not reach further than 24 days; a look a day is enough.
      if (left > 0) return Math.min(left, day)
      if (isKept) return keptFor
      await resources.delete(
        OwnedAccessKey,
        { namespace: '', name },
        { preconditions: { uid: key.metadata.uid ?? '' } },
      )
      return undefined
    },
    failed: (name, error) => failed(`sweeping access key "${name}"`, error),
  })
  const informer = startInformer({
    resources,
    kind: OwnedAccessKey,
    // Without a maximum, what has no ttl never ends, and need not be parsed.
    counts: maxTTL === undefined ? mentions('ttl') : () => true,
    keep: object => object,
    failed: error => failed('watching access keys', error),
    changed: ({ name }, key) => {
      if (key && endOf(key) !== undefined) loop.add(name)
    },
  })
  return {
    ready: informer.ready,
    idle: loop.idle,
    async stop() {
      informer.stop()
      await loop.stop()
    },
  }
}
