// Sign-in of people: their sessions, the refresh of their groups, and the pages below /auth.

import { hash, randomBytes, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import type { Logger } from 'pino'
import type { ExchangeToken } from '../auth/jwt/exchange.ts'
import type { Providers } from '../auth/oidc/provider.ts'
import { type LoginStates, openLoginStates } from '../auth/sessions/login-states.ts'
import { openSessionRefresh } from '../auth/sessions/refresh.ts'
import { openSessions, type Sessions } from '../auth/sessions/sessions.ts'
import { openRateLimit } from '../http/sign-in/rate-limit.ts'
import { openSignInPages, type SignInPages } from '../http/sign-in/routes.ts'
import { LoginState } from '../kinds/login-state.ts'
import { OwnedAccessKey } from '../kinds/owned-access-key.ts'
import { ClusterRole } from '../kinds/rbac.ts'
import { isLoopback } from '../serving/listener.ts'
import type { Metrics } from '../serving/metrics.ts'
import type { UnknownKeyLimiter } from '../serving/unknown-key-limiter.ts'
import type { Sealer } from '../storage/encryption.ts'
import type { ApiServer, OpenedSignIn, SignInParts } from './api-server.ts'
import { sealsFor } from './encryption.ts'
import type { Settings } from './settings.ts'

export type PeopleOptions = {
  readonly providers: Providers
  readonly metrics: Metrics
  readonly log: Logger
  readonly now: () => number
}

export type People = {
  readonly sessions: Sessions
  readonly states: LoginStates
  readonly checks: NonNullable<OpenedSignIn['sessions']>
}

export function openPeople({ providers, metrics, log, now }: PeopleOptions, parts: SignInParts): People {
  const { keyIndex, internalClient: resources, isLive } = parts
  const open = (name: string) => parts.open(OwnedAccessKey, { namespace: '', name })
  const refreshes = metrics.counter(
    'platform_session_refreshes_total',
    'Refreshes of sessions, by provider and result.',
  )
  const providerNamed = (name: string) => providers.get(name)
  return {
    checks: openSessionRefresh({
      keyIndex,
      providerNamed,
      resources,
      open,
      now,
      refreshed: (provider, result, error) => {
        refreshes({ provider, result })(1)
        if (result !== 'success') log.warn({ provider, result, err: error }, 'a session could not be refreshed')
      },
    }),
    states: openLoginStates({
      resources,
      open: ref => parts.open(LoginState, ref),
      now,
      failed: error => log.warn({ err: error }, 'watching login states failed, retrying'),
    }),
    sessions: openSessions({ keyIndex, providerNamed, signIn: parts.signIn, resources, open, isLive, now }),
  }
}

export type PagesOptions = Omit<PeopleOptions, 'metrics'> & {
  readonly people: Pick<People, 'sessions' | 'states'>
  readonly exchangeToken: ExchangeToken | undefined
  readonly apiServer: Pick<ApiServer, 'authenticate' | 'prepare' | 'keyEnds' | 'registry'>
  readonly sealer: Sealer
  readonly guard: UnknownKeyLimiter
  readonly settings: Settings
  readonly metrics: Metrics
  /** The certificate of the HTTPS listener in PEM; undefined: there is none. */
  readonly certificate: () => string | undefined
}

/** The session cookie has the id of the installation in its name, because all ports of a host share cookies. */
export function cookieNameOf({ registry }: Pick<ApiServer, 'registry'>): () => string {
  let name: string | undefined
  return () => {
    // The built-in role exists from the first start on, and cannot be deleted.
    const { uid = '' } = registry.peek(ClusterRole, { namespace: '', name: 'platform-admin' })?.metadata ?? {}
    name ??= `__Host-platform-${hash('sha256', uid, 'hex').slice(0, 12)}`
    return name
  }
}

export function openPages(options: PagesOptions, sessionCookie: () => string): SignInPages {
  const { people, exchangeToken, apiServer, sealer, guard, settings, metrics, certificate, providers, log, now } =
    options
  const signIns = metrics.counter('platform_sign_ins_total', 'Sign-ins, by provider and result.')
  const [perAddress, total] = [settings['limits.auth'], settings['limits.authTotal']]
  const limits = {
    other: openRateLimit({ now, perAddress, total }),
    logout: openRateLimit({ now, perAddress: total, total }),
    // Codes are stored for ten minutes.
    device: openRateLimit({ now, perAddress: 10, total: 900, window: 600_000 }),
  }
  return openSignInPages({
    ...people,
    exchangeToken,
    providers,
    authenticate: apiServer.authenticate,
    prepare: apiServer.prepare,
    keyEnds: apiServer.keyEnds,
    guard,
    ...sealsFor(sealer, 'cookie'),
    sessionCookie,
    publicUrl: settings.baseUrl,
    isOwnHost: host => isLoopback(host) || isNamedIn(certificate(), host.replace(/^\[|\]$/g, '')),
    pastedKeys: settings['auth.pastedKeys'],
    now,
    random: size => randomBytes(size),
    limit: (bucket, address) => limits[bucket](address),
    report: (provider, result, error) => {
      signIns({ provider, result })(1)
      if (result !== 'Success')
        log.warn({ provider, result, reason: error instanceof Error ? error.message : undefined }, 'sign-in failed')
    },
  })
}

function isNamedIn(certificate: string | undefined, host: string): boolean {
  if (certificate === undefined) return false
  const leaf = new X509Certificate(certificate)
  return (isIP(host) ? leaf.checkIP(host) : leaf.checkHost(host)) !== undefined
}
