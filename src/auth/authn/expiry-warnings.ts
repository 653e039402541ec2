// Warns clients whose access key expires soon, and lists the keys that somebody has to renew.

import type { Caller } from '../../api/caller.ts'
import type { AccessKey } from './access-key-index.ts'
import { endOf, type KeyChecks } from './key-problem.ts'

type Options = Pick<KeyChecks, 'keyIndex' | 'lastActivity'> & { readonly now: () => number }

const hour = 3600 * 1000
const day = 24 * hour

/** Not sessions, which people renew by signing in. */
const hasRenewal = ({ ttl, slides, idle }: AccessKey) =>
  ttl !== undefined && ttl >= day && !slides && idle === undefined

/** Warns clients whose key expires soon: in its last tenth, at most seven days before, once an hour. Short-lived keys get no warning. */
export function expiryWarnings({ keyIndex, now, lastActivity }: Options): (caller: Caller) => string | undefined {
  const warnedAt = new WeakMap<AccessKey, number>()
  /** A caller object is replaced when its key changes, so most callers are checked once. */
  const quiet = new WeakSet<Caller>()
  return caller => {
    if (quiet.has(caller)) return undefined
    const key = caller.keyUid === undefined ? undefined : keyIndex.withUid(caller.keyUid)
    if (!key || !hasRenewal(key)) {
      quiet.add(caller)
      return undefined
    }
    const left = endOf(key, lastActivity) - now()
    if (left > Math.min((key.ttl ?? 0) / 10, 7 * day) || now() - (warnedAt.get(key) ?? 0) < hour) return undefined
    warnedAt.set(key, now())
    const [number, unit] =
      left >= day ? [Math.floor(left / day), 'day'] : [Math.max(1, Math.floor(left / hour)), 'hour']
    return `access key ${key.name} expires in ${number} ${unit}${number === 1 ? '' : 's'}`
  }
}

/** Expiry in milliseconds of every valid key that a person has to renew: with a lifetime of at least a day that use does not extend. */
export const renewalsWith = ({
  keyIndex,
  lastActivity,
  isLive,
}: Omit<Options, 'now'> & { readonly isLive: (key: AccessKey) => boolean }) =>
  function* (): Iterable<number> {
    for (const key of keyIndex.all()) if (hasRenewal(key) && isLive(key)) yield endOf(key, lastActivity)
  }
