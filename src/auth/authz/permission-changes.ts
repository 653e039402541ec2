// Notifies the request pipeline and the controllers about changed permissions.

import type { Affects, PermissionVersions } from '../../api/permissions.ts'
import { forEachInSlices } from '../../api/time-slices.ts'
import { ownTerms } from './visible-objects.ts'

/** More changes at once are treated as one that affects everybody. */
const maxChanges = 20
/** Older changes are treated as changes that affect everybody. */
const maxRecent = 100

/** Notifies listeners that permissions may have changed, once for several concurrent changes. */
export function openPermissionChanges() {
  const followers = new Set<(affects: Affects) => void>()
  let pending: Affects[] = []
  let isNotifying = false
  let version = 0
  const recent: Affects[] = []
  const count = (affects: Affects) => {
    version++
    recent.push(affects)
    if (recent.length > maxRecent) recent.shift()
  }
  const versions: PermissionVersions = {
    current: () => version,
    isAffected: (caller, since) =>
      version !== since &&
      // The groups of an impersonated user come from the request, and the right to impersonate from somebody else.
      (caller.impersonator !== undefined ||
        version - since > recent.length ||
        recent.slice(recent.length - (version - since)).some(affects => affects(caller))),
    step: terms => count(terms ? caller => ownTerms(caller).some(term => terms.has(term)) : everybody),
  }

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
      count(affects)
      pending.push(affects)
      if (!isNotifying) void notify()
    },
    versions,
    follow: (callback: (affects: Affects) => void) => {
      followers.add(callback)
      return () => void followers.delete(callback)
    },
  }
}

const everybody: Affects = () => true
