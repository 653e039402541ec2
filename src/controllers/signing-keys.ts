// Makes signing keys in time and removes those that nothing alive was signed with (D31).

import { ignoreConflict } from '../api/errors.ts'
import { type Json, type Resource, timestamp } from '../api/object.ts'
import { type Resources, refOf } from '../api/resources.ts'
import { longestTokenTTL } from '../kinds/direct-cluster-endpoint-token.ts'
import { SigningKey } from '../kinds/signing-key.ts'
import { startInformer } from '../reconcile/informer.ts'
import { startLoop } from '../reconcile/work-queue.ts'

export type SigningKeyOptions = {
  /** As somebody who may create them. */
  readonly resources: Resources
  readonly now: () => number
  readonly failed: (what: string, error: unknown) => void
}

const day = 24 * 3600 * 1000
const signsFor = 30 * day
/** The delay between publishing a key and signing with it, so that verifiers with a cached key set know it by then. */
const publishedBefore = day
const hour = 3600 * 1000
const skew = 300_000

export function startSigningKeys({ resources, now, failed }: SigningKeyOptions): {
  readonly ready: Promise<void>
  idle(): Promise<void>
  stop(): Promise<void>
} {
  const loop = startLoop({
    reconcile: async () => {
      await rotate()
      return hour
    },
    failed: (_, error) => failed('rotating signing keys', error),
  })
  const keys = startInformer({
    resources,
    kind: SigningKey,
    keep: () => undefined,
    changed: () => loop.add(rotation),
    failed: error => failed('watching signing keys', error),
  })

  async function rotate(): Promise<void> {
    // Reads the current keys: the cache may not have the newest one yet, and a second would be created.
    const { items } = await resources.list(SigningKey)
    const inOrder = items.map(({ object }) => read(object)).sort((one, other) => one.signsFrom - other.signsFrom)
    const newest = inOrder.at(-1)
    const begun = inOrder.filter(one => one.signsFrom <= now())
    if (begun.length === 0) await make(now())
    else if (newest && newest.signsFrom + signsFor - publishedBefore <= now())
      await make(Math.max(newest.signsFrom + signsFor, now() + publishedBefore))
    // Tokens outlive the key's time as the signing key.
    for (const [index, key] of begun.entries()) {
      const next = begun[index + 1]
      if (next && next.signsFrom + longestTokenTTL * 1000 + skew <= now())
        await resources.delete(SigningKey, key.ref, { preconditions: { uid: key.uid } }).catch(ignoreConflict)
    }
  }

  const make = (from: number) =>
    resources.create(SigningKey, '', { spec: { signsFrom: timestamp(from) } } as Json, { fieldManager: 'signing-keys' })

  const ready = keys.ready.then(async () => {
    loop.add(rotation)
    await loop.idle()
  })
  return {
    ready,
    idle: loop.idle,
    async stop() {
      keys.stop()
      await loop.stop()
    },
  }
}

/** The one thing there is to reconcile. */
const rotation = 'rotation'

const read = (object: Resource) => ({
  ref: refOf(object),
  uid: object.metadata.uid ?? '',
  signsFrom: Date.parse(String(object.spec?.['signsFrom'])),
})
