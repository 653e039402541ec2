// Remembers the last activity that responses showed, so that a dry run can repeat it (D19).
// Clients such as `kubectl diff` compare a dry run with the get before it, and both requests are uses of a key.

import type { Caller } from '../api/caller.ts'

export type LastActivity = (id: string) => number | undefined

export type ShownActivity = {
  /** The current times. Remembers them as shown to the caller. */
  current(caller: Caller): LastActivity
  /** The times that the caller saw last; the current ones if the caller saw none. */
  shown(caller: Caller): LastActivity
}

/** Enough for the objects of one manifest, in several clients at once. */
const maxTimes = 10_000

export function openShownActivity(lastActivity: LastActivity): ShownActivity {
  const times = new Map<string, number>()
  const keyOf = ({ username }: Caller, id: string) => `${id} ${username}`
  return {
    current: caller => id => {
      const time = lastActivity(id)
      if (time === undefined) return undefined
      const key = keyOf(caller, id)
      times.delete(key)
      times.set(key, time)
      if (times.size > maxTimes) times.delete(times.keys().next().value as string)
      return time
    },
    shown: caller => id => times.get(keyOf(caller, id)) ?? lastActivity(id),
  }
}
