// Looks up owner, expiry and digest of access keys for admission, and limits wrong guesses per caller.

import type { Claimants } from '../admission/brought-keys.ts'
import type { Caller } from '../api/caller.ts'
import type { AccessKey, AccessKeyIndex } from '../auth/authn/access-key-index.ts'
import { type Authenticate, isGuess, type Prepare } from '../auth/authn/authenticate.ts'
import { endOf, type SessionChecks } from '../auth/authn/key-problem.ts'
import { checkGuess, type UnknownKeyLimiter } from '../serving/unknown-key-limiter.ts'

type Options = {
  readonly keyIndex: AccessKeyIndex
  readonly authenticate: Authenticate & { readonly prepare: Prepare }
  readonly isLive: (key: AccessKey) => boolean
  readonly lastActivity: (id: string) => number | undefined
  readonly touch: (uid: string, time: number) => void
  readonly now: () => number
  readonly sessions: SessionChecks | undefined
  readonly guard: Pick<UnknownKeyLimiter, 'mayTry' | 'secondsLeft' | 'failed'> | undefined
}

/** A gateway reviews keys for all of its clients. Only this many guessing clients at a time delay the others. */
const clientsOfGateway = 50

export function accessKeyLookups(options: Options) {
  const { keyIndex, authenticate, isLive, lastActivity, touch, now, sessions, guard } = options
  const endOfKey = (uid: string) => {
    const key = keyIndex.withUid(uid)
    return key && endOf(key, lastActivity)
  }
  const ownKeyEnds = ({ issuer, keyUid, keyUntil = Number.POSITIVE_INFINITY }: Caller): number | undefined => {
    if (issuer !== undefined) return keyUntil
    if (keyUid === undefined) return undefined
    const end = Math.min(endOfKey(keyUid) ?? now(), keyUntil)
    return end === Number.POSITIVE_INFINITY ? undefined : end
  }
  const keyOf = ({ keyUid }: Caller) => (keyUid === undefined ? undefined : keyIndex.withUid(keyUid))
  return {
    /** Expiry of the current secret of a key in milliseconds; undefined if it does not exist. */
    endOfKey,

    /** Expiry of the caller's secret or token. A deleted key has expired, even if another key has its name. */
    ownKeyEnds,

    /** No token outlives its key, or the time for which the groups of a signed-in user count without another refresh (D31, D67). */
    tokensEnd(caller: Caller): number | undefined {
      const key = keyOf(caller)
      const login = key && keyIndex.loginOf(key)
      const end = Math.min(
        ownKeyEnds(caller) ?? Number.POSITIVE_INFINITY,
        (login && sessions?.endOf(login)) ?? Number.POSITIVE_INFINITY,
      )
      return end === Number.POSITIVE_INFINITY ? undefined : end
    },

    /** People create keys for pipelines while they are signed in, so a session sets no limit (D62). */
    newKeysEnd: (caller: Caller) => (keyOf(caller)?.idle === undefined ? ownKeyEnds(caller) : undefined),

    /** The key that a provider vouched for, behind the key of the caller. */
    loginOf(caller: Caller): AccessKey | undefined {
      const key = keyOf(caller)
      return key && keyIndex.loginOf(key)
    },

    /** The sign-in of a Login key; undefined: it has none, or is deleted. */
    sessionOf: (uid: string) => keyIndex.withUid(uid)?.session,

    /** Suspended keys count: they work again when the person signs in again (D66). */
    hasDependents(uid: string): boolean {
      for (const key of keyIndex.childrenOf(uid))
        if (!key.deleting && !key.disabled && endOf(key, lastActivity) > now()) return true
      return false
    },

    /** Records uses of keys. Returns the number of valid keys. */
    touchKeys(uses: readonly { readonly uid: string; readonly time: number }[]): number {
      // Reports may be late or come from a compromised gateway, so they do not revive an expired key.
      const valid = uses.filter(({ uid, time }) => {
        const key = keyIndex.withUid(uid)
        return key !== undefined && isLive(key) && time < endOf(key, lastActivity)
      })
      for (const { uid, time } of valid) touch(uid, time)
      // Also for keys that are rejected because the groups of their user are too old: only a refresh tells whether the user lost them.
      for (const { uid } of uses) {
        const key = keyIndex.withUid(uid)
        const login = key && !key.deleting && !key.disabled ? keyIndex.loginOf(key) : undefined
        if (login) sessions?.used(login)
      }
      return valid.length
    },

    /** The owner of a reviewed key. An unknown key counts as a guess; a known key is never rejected. */
    async authenticateKey({ username, impersonator, scope }: Caller, key: string): Promise<Caller | undefined> {
      try {
        await authenticate.prepare(`Bearer ${key}`)
        return authenticate(`Bearer ${key}`, true)
      } catch (error) {
        if (!isGuess(error) || !guard) throw error
        // The gateway limits each client address. This limits the holder of the gateway's own key.
        const isGateway = scope?.roles?.some(({ role }) => role === 'agent')
        const source = `${isGateway ? 'gateway ' : ''}reviews by ${impersonator ?? username}`
        checkGuess(guard, source)
        guard.failed(source, isGateway ? clientsOfGateway : 1)
        throw error
      }
    },

    /** Whether another key has the digest. A refusal reveals that a key is in use, so it counts as a guess (D62). */
    isDigestTaken({ username }: Caller, digest: string, { uid, holders }: Claimants): boolean {
      const source = `keys brought by ${username}`
      if (guard) checkGuess(guard, source)
      const isTaken = [keyIndex.find(digest)?.uid ?? uid, ...holders].some(one => one !== uid)
      if (isTaken) guard?.failed(source)
      return isTaken
    },
  }
}
