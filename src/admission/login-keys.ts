// Access keys of signed-in people and machines: only the server writes them. Keys made with a session depend on its sign-in (D62, D64, D66, D67).

import { isDeepStrictEqual } from 'node:util'
import { type Caller, credentialOf } from '../api/caller.ts'
import { forbidden } from '../api/errors.ts'
import type { Resource } from '../api/object.ts'
import { type LoginSession, loginAnnotation, sessionRecordOf } from '../kinds/login-session.ts'
import { machineRecordOf } from '../kinds/machine-key.ts'
import type { KeyWrite } from './key-lifetime.ts'

type Login = { readonly uid: string; readonly name: string; readonly session: LoginSession | undefined }

export type LoginDependencies = {
  /** The key that a provider vouched for when the caller signed in; undefined: the caller has no sign-in. */
  readonly loginOf: (caller: Caller) => Login | undefined
  /** The sign-in of a Login key; undefined: it has none, or is deleted. */
  readonly sessionOf: (uid: string) => LoginSession | undefined
}

/** The owner and administrators can only disable a session. Its lifetime and identity come from the sign-in. */
export function checkLoginKey({ kind, next, old, request, isIssued }: KeyWrite): void {
  const refuse = (why: string) => forbidden(kind, next.metadata.name ?? '', why)
  const isSession = old !== undefined && sessionRecordOf(old as Resource) !== undefined
  if (next.spec?.type === 'Login' && old?.spec?.type !== 'Login')
    throw refuse('spec.type: keys of type Login are created by signing in; use User or Other')
  if (!isSession) return
  if (isIssued) throw refuse('a session cannot be rotated; sign in again')
  if (old.spec?.disabled && !next.spec?.disabled) throw refuse('a disabled session stays disabled; sign in again')
  if (!isSameExceptDisabled(next, old) || request.written.length)
    throw refuse('the key is a session of a signed-in user: it can be disabled or deleted, but not changed')
}

/**
 * A key that depends on a sign-in gives the groups of the provider, now and after each refresh. Another key of the same user does not
 * have them, so it cannot make such a key stronger (D22, D66).
 */
export function checkSignIn({ loginOf, sessionOf }: LoginDependencies, { kind, next, old, request }: KeyWrite): void {
  const uid = old?.metadata.annotations?.[loginAnnotation]
  if (uid === undefined) return
  const { caller } = request
  const refuse = (why: string) => forbidden(kind, next.metadata.name ?? '', why)
  const own = loginOf(caller)
  if (own?.uid === uid) return
  const session = sessionOf(uid)
  if (!session)
    throw refuse('the sign-in that the key depends on has ended, so it would stay rejected; create a new key')
  if (own?.session?.issuer !== session.issuer || own.session.subject !== session.subject)
    throw refuse(
      `the key depends on a sign-in that ${credentialOf(caller)} does not have; sign in as its user to rotate, enable or extend it`,
    )
  const foreign = session.groups.filter(group => !caller.groups.includes(group))
  if (foreign.length)
    throw refuse(
      `the key has groups of an earlier sign-in that user "${caller.username}" is not in now: ${foreign.map(one => JSON.stringify(one)).join(', ')}; create a new key`,
    )
}

/** The lifetime and identity of such a key come from the token of a machine (D67). */
export function checkExchangedKey({ kind, next, old, request, isIssued }: KeyWrite): void {
  if (!old || machineRecordOf(old as Resource) === undefined) return
  const isEnabled = old.spec?.disabled && !next.spec?.disabled
  if (isIssued || isEnabled || !isSameExceptDisabled(next, old) || request.written.length)
    throw forbidden(
      kind,
      next.metadata.name ?? '',
      'the key comes from the exchange of a token: it can be disabled or deleted, but not changed, enabled or rotated',
    )
}

/** A write of a hidden field counts as a change, even if the value is the same: the response confirms no guess (D5). */
function isSameExceptDisabled(next: KeyWrite['next'], old: KeyWrite['next']): boolean {
  const { disabled: _, ...after } = next.spec ?? {}
  const { disabled: __, ...before } = old.spec ?? {}
  return isDeepStrictEqual(after, before) && isDeepStrictEqual(ownMetadata(next), ownMetadata(old))
}

/** The server keeps its own annotations in the same fields. They share one size limit. */
const ownMetadata = ({ metadata: { labels, annotations, finalizers, ownerReferences } }: KeyWrite['next']) => ({
  labels: labels ?? {},
  annotations: annotations ?? {},
  finalizers: finalizers ?? [],
  ownerReferences: ownerReferences ?? [],
})

/** A new key of the caller depends on the caller's sign-in: it gets the groups of the provider, and ends with the identity. */
export function withLogin(
  { loginOf }: LoginDependencies,
  { next, old, request }: KeyWrite,
  object: Resource,
): Resource {
  const { caller } = request
  const login = old || next.spec?.user !== caller.username ? undefined : loginOf(caller)
  if (!login) return object
  const annotations = { ...object.metadata.annotations, [loginAnnotation]: login.uid }
  return {
    ...object,
    metadata: { ...object.metadata, annotations },
    spec: { ...object.spec, parent: login.name },
  }
}
