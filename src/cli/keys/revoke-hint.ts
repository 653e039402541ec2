// Suggests how users without permission to revoke can invalidate their own tokens.

import { ApiError } from '../../api/errors.ts'
import type { Resource } from '../../api/object.ts'
import { scopeDenialOf } from '../scope-denied.ts'
import type { Session } from '../session.ts'
import { isOf, keyInUse } from './key-in-use.ts'

type RevokeTarget = {
  /** The key of --key. */
  readonly key: Resource | undefined
  /** Whether --jti or --key-uid is set: then the owner is unknown. */
  readonly byId: boolean
  readonly users: readonly string[]
}

/** Rethrows the error, with an alternative if there is one. */
export const withRevokeHint = (session: Pick<Session, 'resources'>, target: RevokeTarget) => async (error: unknown) => {
  // A scoped key cannot rotate keys either, so the hint would not help.
  if (!(error instanceof ApiError) || error.code !== 403 || scopeDenialOf(error)) throw error
  const hint = await hintFor(session, target)
  throw hint === undefined ? error : new ApiError(403, 'Forbidden', `${error.message}; ${hint}`)
}

async function hintFor(
  session: Pick<Session, 'resources'>,
  { key, byId, users }: RevokeTarget,
): Promise<string | undefined> {
  const { username, own } = await keyInUse(session)
  if (key && isOf(key, username)) {
    const name = key.metadata.name ?? ''
    // A key with a lifetime or a scope cannot rotate itself (D22).
    const isBound = own === name && (key.spec?.['scope'] !== undefined || Boolean(key.spec?.['ttl']))
    return `the key is yours; to invalidate all its tokens: ${isBound ? '' : `platform rotate accesskey ${name} or `}platform delete accesskey ${name}`
  }
  return byId || (username !== undefined && users.includes(username))
    ? 'to invalidate all tokens of your own key: platform rotate accesskey NAME or platform delete accesskey NAME'
    : undefined
}
