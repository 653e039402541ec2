// Notifies the request pipeline and the controllers about changed permissions.

import type { Affects } from '../../api/permissions.ts'
import { forEachInSlices } from '../../api/time-slices.ts'

/** More changes at once are treated as one that affects everybody. */
const maxChanges = 20

/** Notifies listeners that permissions may have changed, once for several concurrent changes. */
export function openPermissionChanges() {
  const followers = new Set<(affects: Affects) => void>()
  let pending: Affects[] = []
  let isNotifying = false

  async function notify(): Promise<void> {
    isNotifying = true
    // The change is complete, and others of the same turn are known.
    await new Promise(setImmediate)
    while (pending.length) {
      const changes = pending.length > maxChanges ? [everybody] : pending
      pending = []
      const affects: Affects = caller => changes.some(change => change(caller))
      await forEachInSlices(followers, follower => follower(affects))
    }
    isNotifying = false
  }

  return {
    /** `affects`: whose permissions may have changed; absent: everybody's. */
    changed: (affects: Affects = everybody) => {
      pending.push(affects)
      if (!isNotifying) void notify()
    },
    follow: (callback: (affects: Affects) => void) => {
      followers.add(callback)
      return () => void followers.delete(callback)
    },
  }
}

const everybody: Affects = () => true
