// Builds and reads the access keys of signed-in people: type Login, with the sealed data of the provider (D64).

import type { JsonObject, Resource } from '../../api/object.ts'
import { timestamp } from '../../api/object.ts'
import { loginAnnotation, loginFinalizer, type SessionRecord, sessionAnnotation } from '../../kinds/login-session.ts'
import type { SignedIn } from '../oidc/provider.ts'

/** Tokens for later requests to the provider. Sealed, never shown. */
export type ProviderData = { readonly refreshToken?: string; readonly idToken: string }

export const providerDataOf = ({ spec = {} }: Resource): ProviderData =>
  JSON.parse((spec['identity'] as { connectorData?: string } | undefined)?.connectorData ?? '{}') as ProviderData

export type Lifetimes = { readonly idle: number; readonly max: number }

/** Without a refresh token nobody says when the person leaves, so the session is short (D67). Seconds. */
export const unrefreshedTTL = 3600

type NewSession = {
  readonly username: string
  readonly displayName: string
  readonly lifetimes: Lifetimes
  readonly machine?: string | undefined
}

/** The key of a sign-in that a provider vouched for. */
export function signedInKey(
  provider: string,
  person: SignedIn,
  session: NewSession & { readonly now: number },
): JsonObject {
  const { username, displayName, lifetimes, machine, now } = session
  const { issuer, sid, refreshToken } = person
  const record: SessionRecord = {
    idle: lifetimes.idle,
    issuer,
    ...(sid === undefined ? {} : { sid }),
    ...(machine === undefined ? {} : { machine }),
    ...(refreshToken === undefined ? { isFinal: true } : {}),
  }
  return {
    metadata: {
      generateName: 'login-',
      finalizers: [loginFinalizer],
      annotations: { [sessionAnnotation]: JSON.stringify(record) },
    },
    spec: {
      type: 'Login',
      displayName,
      user: username,
      ttl: refreshToken === undefined ? Math.min(lifetimes.max, unrefreshedTTL) : lifetimes.max,
      ...identityFields(provider, username, person, now),
    },
  }
}

/** The fields that every refresh replaces. */
export function identityFields(provider: string, username: string, person: SignedIn, now: number): JsonObject {
  const { subject, preferredUsername, email, emailVerified, groups, refreshToken, idToken } = person
  const data: ProviderData = { ...(refreshToken === undefined ? {} : { refreshToken }), idToken }
  return {
    identity: {
      userId: subject,
      username,
      ...(preferredUsername === undefined ? {} : { preferredUsername }),
      ...(email === undefined ? {} : { email }),
      ...(emailVerified === undefined ? {} : { emailVerified }),
      groups: [...groups],
      connector: provider,
      connectorData: JSON.stringify(data),
    },
    identityRefresh: timestamp(now),
  }
}

/** The key of another device of the same person, which depends on the sign-in in the browser. */
export function derivedKey(login: { readonly uid: string; readonly name: string }, session: NewSession): JsonObject {
  const { username, displayName, lifetimes, machine } = session
  const record: SessionRecord = { idle: lifetimes.idle, ...(machine === undefined ? {} : { machine }) }
  return {
    metadata: {
      generateName: 'login-',
      annotations: { [sessionAnnotation]: JSON.stringify(record), [loginAnnotation]: login.uid },
    },
    spec: { type: 'Login', displayName, user: username, ttl: lifetimes.max, parent: login.name },
  }
}
