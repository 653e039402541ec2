// Signs a token only for a caller who is still the same after the writes that are in progress.

import type { Caller } from '../api/caller.ts'
import { ApiError } from '../api/errors.ts'
import type { Issuer } from '../auth/tokens/issuer.ts'

type Dependencies = {
  readonly issuer: Issuer
  /** Resolves when the writes of keys and teams that are in progress have ended. */
  readonly settled: () => Promise<void>
  readonly isCurrent: (caller: Caller) => boolean
}

/**
 * A revocation is as old as the start of its write. A token that was signed during the write would be younger, and valid although
 * its key or team is not.
 */
export const signCurrentWith =
  ({ issuer, settled, isCurrent }: Dependencies): Issuer['sign'] =>
  async (caller, wanted) => {
    const signed = await issuer.sign(caller, wanted)
    // As old as the token that it replaces, so that the revocation applies to it.
    if (wanted.instead) return signed
    await settled()
    if (isCurrent(caller)) return signed
    throw new ApiError(
      409,
      'Conflict',
      'the access key or a team of its owner changed while the token was signed; retry',
    )
  }
