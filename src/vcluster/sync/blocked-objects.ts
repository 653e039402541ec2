// Remembers which objects wait for a foreign or terminating host object to disappear.

import type { Ref } from '../../api/object.ts'

const slotOf = ({ namespace, name }: Ref) => `${namespace}/${name}`

export interface BlockedObjects {
  /** Adds or removes the object `name`, which needs the host object. */
  set(name: string, host: Ref, isBlocked: boolean): void
  /** Objects to retry when the host object changes. */
  waitingFor(host: Ref): Iterable<string>
}

export function openBlockedObjects(): BlockedObjects {
  const waiting = new Map<string, Set<string>>()
  return {
    set(name, host, isBlocked) {
      const slot = slotOf(host)
      const others = waiting.get(slot)
      if (isBlocked) waiting.set(slot, (others ?? new Set()).add(name))
      else if (others?.delete(name) && others.size === 0) waiting.delete(slot)
    },
    waitingFor: host => waiting.get(slotOf(host)) ?? [],
  }
}
