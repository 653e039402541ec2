// The sign-in behind an access key, as the server records it on the object (D64, D66). Only the server writes these annotations (D26).

import type { Resource } from '../api/object.ts'

/** On a key of type Login that a provider vouched for. */
export const sessionAnnotation = 'platform.sh/session'
/** On a key that a caller created with a Login key: the uid of the Login key that the provider vouched for. */
export const loginAnnotation = 'platform.sh/login'
/** Why the sign-in does not count until the person signs in again. */
export const suspendedAnnotation = 'platform.sh/suspended'

/** On such a key: it is kept after its end while other keys depend on the sign-in (D66). */
export const loginFinalizer = 'platform.sh/login'

/** The answer of a provider at sign-in, or at the last refresh. */
export type LoginSession = {
  readonly provider: string
  readonly issuer: string
  readonly subject: string
  readonly groups: readonly string[]
  /** Milliseconds. */
  readonly refreshed: number
  /** The provider's id of the session, for back-channel logout. */
  readonly sid: string | undefined
  readonly suspended: string | undefined
  /** The provider gave no refresh token, so there is no refresh. */
  readonly isFinal: boolean
}

/** The part of a session that does not change. */
export type SessionRecord = {
  /** Seconds without use after which the session ends. */
  readonly idle: number
  readonly issuer?: string
  readonly sid?: string
  readonly machine?: string
  /** The provider gave no refresh token. */
  readonly isFinal?: boolean
}

type Identity = { readonly connector?: string; readonly userId?: string; readonly groups?: readonly string[] }

export function sessionRecordOf({ metadata, spec = {} }: Resource): SessionRecord | undefined {
  const written = metadata.annotations?.[sessionAnnotation]
  if (written === undefined || spec['type'] !== 'Login') return undefined
  return JSON.parse(written) as SessionRecord
}

/** undefined: no provider vouched for the key itself. */
export function loginSessionOf(object: Resource): LoginSession | undefined {
  const record = sessionRecordOf(object)
  if (record?.issuer === undefined) return undefined
  const { identity = {}, identityRefresh } = object.spec as { identity?: Identity; identityRefresh?: string }
  return {
    provider: identity.connector ?? '',
    issuer: record.issuer,
    subject: identity.userId ?? '',
    groups: identity.groups ?? [],
    refreshed: Date.parse(identityRefresh ?? object.metadata.creationTimestamp ?? ''),
    sid: record.sid,
    isFinal: record.isFinal === true,
    suspended: object.metadata.annotations?.[suspendedAnnotation],
  }
}
