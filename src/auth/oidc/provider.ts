// A provider that people sign in with: authorization code with PKCE, refresh, logout.

import {
  authorizationCodeGrant,
  buildAuthorizationUrl,
  buildEndSessionUrl,
  type Configuration,
  calculatePKCECodeChallenge,
  fetchUserInfo,
  refreshTokenGrant,
  type ServerMetadata,
  type TokenEndpointResponse,
} from 'openid-client'
import type { JsonObject } from '../../api/object.ts'
import { isName, maxName } from '../jwt/claim-mapping.ts'
import type { Connection } from './connection.ts'
import { type LogoutToken, verifyIdToken, verifyLogoutToken } from './id-token.ts'
import type { LoginConfig } from './login-config.ts'
import { openidFor } from './openid.ts'
import { ProviderError, providerError } from './provider-error.ts'

/** A person as described by the provider, mapped by its login entry. */
export type SignedIn = {
  readonly issuer: string
  readonly subject: string
  /** With the prefix of the entry. */
  readonly username: string
  /** The display name. */
  readonly preferredUsername?: string | undefined
  readonly email?: string | undefined
  readonly emailVerified?: boolean | undefined
  /** With the prefix, filtered by the group patterns, without names of system: and platform:. */
  readonly groups: readonly string[]
  /** The session at the provider. */
  readonly sid?: string | undefined
  /** After a refresh: the one to use next time. */
  readonly refreshToken?: string | undefined
  /** Empty after a refresh without a new ID token; the earlier one remains the hint for logout. */
  readonly idToken: string
}

export type AuthorizationRequest = {
  readonly redirectUri: string
  readonly state: string
  readonly nonce: string
  readonly codeVerifier: string
  readonly loginHint?: string
}

/** All methods reject with ProviderError. */
export interface Provider {
  readonly config: LoginConfig
  authorizationUrl(request: AuthorizationRequest): Promise<URL>
  /** Checks state, nonce, iss (RFC 9207), PKCE, signature, audience, azp and times. */
  exchange(callback: URL, expected: Omit<AuthorizationRequest, 'loginHint'>): Promise<SignedIn>
  /** The subject must be the one that signed in. */
  refresh(refreshToken: string, expected: { readonly subject: string }): Promise<SignedIn>
  /** undefined: the provider has no end_session_endpoint. */
  logoutUrl(request: { readonly idToken?: string; readonly returnTo: string }): Promise<URL | undefined>
  /** Checks everything but the replay of jti. */
  verifyLogoutToken(token: string): Promise<LogoutToken>
}

export interface Providers {
  list(): readonly Provider[]
  get(name: string): Provider | undefined
  /** Called after every reload. */
  use(configs: readonly LoginConfig[]): void
  stop(): void
}

export type ProviderOptions = {
  readonly connection: Connection
  readonly now: () => number
  readonly droppedGroups: (count: number) => void
}

/** A longer hint may exceed the limits of servers for URLs. Providers then ask the person. */
const maxHint = 4096
const defaultScopes = ['openid', 'profile', 'email']

export function openProvider(config: LoginConfig, { connection, now, droppedGroups }: ProviderOptions): Provider {
  const { name } = config
  const check = () => ({ config, keys: connection.keys(), now })
  const fail = (code: ProviderError['code'], message: string) => new ProviderError(code, `provider ${name}: ${message}`)

  /** Runs a request. Rejects with ProviderError. */
  async function run<T>(work: (openid: Configuration, metadata: ServerMetadata) => Promise<T> | T): Promise<T> {
    try {
      const metadata = await connection.metadata()
      return await work(openidFor(config, { metadata, http: connection.http, now }), metadata)
    } catch (error) {
      throw providerError(name, error)
    }
  }

  type Tokens = {
    readonly openid: Configuration
    readonly metadata: ServerMetadata
    readonly tokens: TokenEndpointResponse
  }

  /** Verified claims of a token response. The signed ID token takes precedence over the userinfo endpoint. */
  async function claimsOf({ openid, metadata, tokens }: Tokens, subject: string | undefined): Promise<JsonObject> {
    const { id_token: idToken, access_token: accessToken } = tokens
    const signed = idToken === undefined ? {} : await verifyIdToken(idToken, accessToken, check())
    if (idToken === undefined && !config.userInfo)
      throw fail('InvalidResponse', 'the response has no ID token; set userInfo: true to read the userinfo endpoint')
    const sub = signed['sub'] ?? subject
    if (typeof sub !== 'string' || !isName(sub, maxName) || sub === '')
      throw fail('InvalidResponse', 'the claim sub must be a string without invisible characters')
    if (subject !== undefined && sub !== subject) throw fail('InvalidResponse', 'the token is of another person (sub)')
    if (!config.userInfo) return signed
    if (!metadata.userinfo_endpoint)
      throw fail('InvalidResponse', 'it has no userinfo endpoint; remove userInfo from auth.yaml')
    return { ...((await fetchUserInfo(openid, accessToken, sub)) as JsonObject), ...signed, sub }
  }

  async function personOf(response: Tokens, subject?: string): Promise<SignedIn> {
    const claims = await claimsOf(response, subject)
    const { displayName, droppedGroups: dropped, ...user } = config.map(claims)
    if (dropped > 0) droppedGroups(dropped)
    const { id_token: idToken = '', refresh_token: refreshToken } = response.tokens
    return {
      ...user,
      issuer: config.url,
      subject: claims['sub'] as string,
      preferredUsername: displayName,
      sid: typeof claims['sid'] === 'string' ? claims['sid'] : undefined,
      refreshToken,
      idToken,
    }
  }

  return {
    config,
    authorizationUrl: ({ redirectUri, state, nonce, codeVerifier, loginHint }) =>
      run(async (openid, metadata) =>
        buildAuthorizationUrl(openid, {
          redirect_uri: redirectUri,
          scope: scopesFor(config, metadata).join(' '),
          state,
          nonce,
          code_challenge: await calculatePKCECodeChallenge(codeVerifier),
          code_challenge_method: 'S256',
          ...(loginHint === undefined ? {} : { login_hint: loginHint }),
          // Google has no offline_access, and gives a refresh token only after consent.
          ...(config.url === 'https://accounts.google.com' ? { access_type: 'offline', prompt: 'consent' } : {}),
        }),
      ),
    exchange: (callback, { redirectUri, state, nonce, codeVerifier }) =>
      run(async (openid, metadata) => {
        // A proxy may have changed the origin of the request. The provider compares the registered URL.
        const url = new URL(redirectUri)
        url.search = callback.search
        const tokens = await authorizationCodeGrant(openid, url, {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: codeVerifier,
          idTokenExpected: true,
        })
        return personOf({ openid, metadata, tokens })
      }),
    refresh: (refreshToken, { subject }) =>
      run(async (openid, metadata) => {
        const tokens = await refreshTokenGrant(openid, refreshToken)
        // A provider that does not rotate returns no refresh token.
        return { refreshToken, ...withoutUndefined(await personOf({ openid, metadata, tokens }, subject)) }
      }),
    logoutUrl: ({ idToken, returnTo }) =>
      run((openid, metadata) =>
        metadata.end_session_endpoint
          ? buildEndSessionUrl(openid, {
              post_logout_redirect_uri: returnTo,
              ...(idToken && idToken.length <= maxHint ? { id_token_hint: idToken } : {}),
            })
          : undefined,
      ),
    verifyLogoutToken: token =>
      verifyLogoutToken(token, check()).catch(error => {
        throw providerError(name, error)
      }),
  }
}

const withoutUndefined = (person: SignedIn): SignedIn =>
  Object.fromEntries(Object.entries(person).filter(([, value]) => value !== undefined)) as SignedIn

function scopesFor({ scopes }: LoginConfig, { scopes_supported: supported = [] }: ServerMetadata): readonly string[] {
  return scopes ?? [...defaultScopes, ...(supported.includes('offline_access') ? ['offline_access'] : [])]
}
