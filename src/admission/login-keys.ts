// Access keys of signed-in people and machines: only the server writes them. Keys made with a session depend on its sign-in (D62, D64, D66, D67).

import { isDeepStrictEqual } from 'node:util'
import type { Caller } from '../api/caller.ts'
import { forbidden } from '../api/errors.ts'
import type { Resource } from '../api/object.ts'
import { loginAnnotation, sessionRecordOf } from '../kinds/login-session.ts'
import { machineRecordOf } from '../kinds/machine-key.ts'
import type { KeyWrite } from './key-lifetime.ts'

export type LoginDependencies = {
  /** The key that a provider vouched for when the caller signed in; undefined: the caller has no sign-in. */
  readonly loginOf: (caller: Caller) => { readonly uid: string; readonly name: string } | undefined
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
