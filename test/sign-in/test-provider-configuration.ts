// The configuration of oidc-provider for the test provider: accounts, clients, claims, lifetimes.

import type { JWK } from 'jose'

export type Claims = { readonly [name: string]: unknown }

export type Account = {
  groups?: readonly string[]
  email?: string
  /** Default true if there is an e-mail. */
  emailVerified?: boolean
  name?: string
  /** More claims: see `moreClaims` below. */
  claims?: Claims
  /** Sign-in and refreshes fail. */
  disabled?: boolean
}

export type ClientOptions = {
  readonly redirectUris?: readonly string[]
  readonly postLogoutRedirectUris?: readonly string[]
  readonly backchannelLogoutUri?: string
}

export const algorithm = 'ES256'
/** Claims of the scope openid besides sub. */
const moreClaims = ['groups', 'roles', 'hd', 'hasgroups', '_claim_names', '_claim_sources']

type Configuration = {
  readonly accounts: { readonly [name: string]: Account }
  readonly options: ClientOptions
  readonly secret: string
  readonly jwk: JWK
  readonly Adapter: unknown
}

export function configurationOf({ accounts, options, secret, jwk, Adapter }: Configuration) {
  const { redirectUris = ['http://127.0.0.1/auth/callback/corp'], postLogoutRedirectUris = [] } = options
  const client = {
    redirect_uris: redirectUris,
    post_logout_redirect_uris: postLogoutRedirectUris,
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    id_token_signed_response_alg: algorithm,
    backchannel_logout_uri: options.backchannelLogoutUri ?? 'http://127.0.0.1:9/unused',
    backchannel_logout_session_required: true,
  }
  return {
    adapter: Adapter,
    clients: [
      { ...client, client_id: 'platform', client_secret: secret },
      { ...client, client_id: 'public', token_endpoint_auth_method: 'none' },
    ],
    jwks: { keys: [jwk] },
    cookies: { keys: ['test'] },
    scopes: ['openid', 'profile', 'email', 'offline_access'],
    claims: {
      openid: ['sub', ...moreClaims],
      profile: ['name', 'preferred_username'],
      email: ['email', 'email_verified'],
    },
    conformIdTokenClaims: false,
    enabledJWA: { idTokenSigningAlgValues: [algorithm, 'HS256'] },
    features: {
      devInteractions: { enabled: false },
      backchannelLogout: { enabled: true },
      rpInitiatedLogout: { enabled: true },
    },
    pkce: { required: () => true },
    rotateRefreshToken: true,
    issueRefreshToken: async () => true,
    expiresWithSession: async () => false,
    ttl: {
      AccessToken: 600,
      AuthorizationCode: 60,
      Grant: 14 * 86_400,
      IdToken: 600,
      Interaction: 600,
      RefreshToken: 14 * 86_400,
      Session: 14 * 86_400,
    },
    renderError: async (ctx: { body: unknown }, out: object) => {
      ctx.body = out
    },
    findAccount: async (_: unknown, accountId: string) => {
      const account = accounts[accountId]
      return account && !account.disabled ? { accountId, claims: async () => claimsOf(accountId, account) } : undefined
    },
    /** Grants everything, so there is no consent page. */
    loadExistingGrant: async (ctx: GrantContext) => {
      const { client: one, session, provider } = ctx.oidc
      const grant = new provider.Grant({ clientId: one.clientId, accountId: session.accountId })
      grant.addOIDCScope('openid profile email offline_access')
      await grant.save()
      return grant
    },
  }
}

type GrantContext = {
  readonly oidc: {
    readonly client: { readonly clientId: string }
    readonly session: { readonly accountId: string }
    readonly provider: {
      readonly Grant: new (of: object) => { addOIDCScope(scope: string): void; save(): Promise<void> }
    }
  }
}

const claimsOf = (sub: string, { groups, email, emailVerified = true, name, claims }: Account): Claims => ({
  sub,
  preferred_username: sub,
  ...(name === undefined ? {} : { name }),
  ...(groups === undefined ? {} : { groups }),
  ...(email === undefined ? {} : { email, email_verified: emailVerified }),
  ...claims,
})
