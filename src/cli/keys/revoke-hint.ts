// What somebody can do about tokens of their own who may not revoke any: let their key go. `platform token revoke` adds it to the refusal.

import { ApiError } from '../../api/errors.ts'
import type { Resource } from '../../api/object.ts'
import { refusedScope } from '../scope-denied.ts'
import type { Session } from '../session.ts'
import { isOf, ownKeyOf } from './key-in-use.ts'

type Meant = {
  /** Named by --key. */
  readonly key: Resource | undefined
  /** Whether a token or key is named by an id, which nobody can tell whose it is. */
  readonly byId: boolean
  readonly users: readonly string[]
}

/** Rejects with the error, and with what can be done in its stead where that is known. */
export const withOwnWay = (session: Pick<Session, 'resources'>, meant: Meant) => async (error: unknown) => {
  // Where the key is too narrow, its owner may be allowed to revoke, and it is too narrow to rotate others as well.
  if (!(error instanceof ApiError) || error.code !== 403 || refusedScope(error)) throw error
  const way = await wayOf(session, meant)
  throw way === undefined ? error : new ApiError(403, 'Forbidden', `${error.message}; ${way}`)
}

async function wayOf(session: Pick<Session, 'resources'>, { key, byId, users }: Meant): Promise<string | undefined> {
  const { username, own } = await ownKeyOf(session)
  if (key && isOf(key, username)) {
    const name = key.metadata.name ?? ''
    // A key with an end or a scope does not rotate itself (D22).
    const isBound = own === name && (key.spec?.['scope'] !== undefined || Boolean(key.spec?.['ttl']))
    return `the key is yours, and all its tokens end at once with ${isBound ? '' : `platform rotate accesskey ${name} or `}platform delete accesskey ${name}`
  }
  return byId || (username !== undefined && users.includes(username))
    ? 'all tokens of a key of your own end at once with platform rotate accesskey NAME or platform delete accesskey NAME'
    : undefined
}
