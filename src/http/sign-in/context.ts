// The parts that the sign-in routes use, and helpers that they share.

import type { Caller } from '../../api/caller.ts'
import { ApiError } from '../../api/errors.ts'
import type { Authenticate, Prepare } from '../../auth/authn/authenticate.ts'
import type { ExchangeToken } from '../../auth/jwt/exchange.ts'
import type { Provider, Providers } from '../../auth/oidc/provider.ts'
import type { LoginStates } from '../../auth/sessions/login-states.ts'
import type { Sessions } from '../../auth/sessions/sessions.ts'
import type { Exchange } from '../../serving/exchange.ts'
import type { Answer } from '../../serving/respond.ts'
import type { UnknownKeyLimiter } from '../../serving/unknown-key-limiter.ts'
import { cookieIn } from './cookies.ts'
import { checkSameOrigin, isNavigation, ownOrigin } from './same-origin.ts'

export type SignInContext = {
  readonly providers: Providers
  readonly sessions: Sessions
  readonly states: LoginStates
  readonly authenticate: Authenticate
  readonly prepare: Prepare
  readonly guard: UnknownKeyLimiter
  /** Exchanges a token of a machine for a key; absent: no issuer is configured. */
  readonly exchangeToken?: ExchangeToken | undefined
  /** Encrypts a text for a purpose. Any replica can open it. */
  readonly seal: (purpose: string, text: string) => string
  /** undefined: not sealed by this installation for this purpose. */
  readonly unseal: (purpose: string, sealed: string) => string | undefined
  /** Name of the session cookie. */
  readonly sessionCookie: () => string
  /** The configured base URL, or ''. */
  readonly publicUrl: string
  /** Whether a certificate names the host, or it is a loopback name. Otherwise a request could invent the address of this server. */
  readonly isOwnHost: (hostname: string) => boolean
  /** Whether people may sign in with an access key. */
  readonly pastedKeys: boolean
  /** The expiry of an access key, if known. */
  readonly keyEnds: (key: string) => number | undefined
  readonly now: () => number
  readonly random: (bytes: number) => Uint8Array
  /** Throws 429 for too many anonymous requests of an address. */
  readonly limit: (bucket: Bucket, address: string) => void
  /** Counts sign-ins by provider and result, and logs failures. */
  readonly report: (provider: string, result: string, error?: unknown) => void
}

/** Requests that are counted together. */
export type Bucket = 'logout' | 'device' | 'other'

export type Route = (context: SignInContext, exchange: Exchange, name: string) => Promise<Answer> | Answer

/** A failure that people see as a page. `code` is stable. */
export class SignInError extends ApiError {
  readonly title: string
  readonly advice: string
  readonly link: Link | undefined
  constructor(code: number, { reason, title, advice, link }: SignInProblem) {
    super(code, reason, `${title}: ${advice}`)
    this.title = title
    this.advice = advice
    this.link = link
  }
}

/** `link`: where to continue, relative to the page. Default: the sign-in page. */
type SignInProblem = {
  readonly reason: string
  readonly title: string
  readonly advice: string
  readonly link?: Link | undefined
}
type Link = { readonly href: string; readonly text: string }

export type SignedInCaller = { readonly caller: Caller; readonly secret: string }

/** The session of the browser; undefined: none, or it has ended. Throws 403 for requests of other sites. */
export async function sessionOf(context: SignInContext, exchange: Exchange): Promise<SignedInCaller | undefined> {
  const { request } = exchange
  const secret = cookieIn(request.headers.cookie, context.sessionCookie())
  if (secret === undefined) return undefined
  if (!isNavigation(request)) checkSameOrigin(exchange, context.publicUrl)
  const header = `Bearer ${secret}`
  await context.prepare(header)
  try {
    const caller = context.authenticate(header)
    return caller && { caller, secret }
  } catch (error) {
    if (error instanceof ApiError && error.code === 401) return undefined
    throw error
  }
}

/** For requests that change something: never without the origin. Throws 401 without a session. */
export async function requireSession(context: SignInContext, exchange: Exchange): Promise<SignedInCaller> {
  checkSameOrigin(exchange, context.publicUrl)
  const session = await sessionOf(context, exchange)
  if (session) return session
  throw new SignInError(401, {
    reason: 'SessionEnded',
    title: 'You are not signed in',
    advice: 'The session has ended. Sign in and try again.',
  })
}

export function providerNamed({ providers }: SignInContext, name: string): Provider {
  const provider = providers.get(name)
  if (provider) return provider
  throw new SignInError(404, {
    reason: 'UnknownProvider',
    title: 'Unknown identity provider',
    advice: 'It is not configured on this server. Go back and choose another one.',
  })
}

/** The URL of this server in the browser. Without a base URL it is the Host that the browser sent. Throws 400 for an unknown host. */
export function ownUrl({ publicUrl, isOwnHost }: SignInContext, { request }: Exchange): string {
  if (publicUrl) return publicUrl
  const origin = ownOrigin(request)
  // A host with other parts of a URL, such as a user, does not survive parsing.
  const url = URL.parse(origin)
  if (url && url.href === `${url.origin}/` && isOwnHost(url.hostname)) return origin
  throw new SignInError(400, {
    reason: 'UnknownHost',
    title: 'Unknown address of this server',
    advice:
      'Sign-in works only at a configured address. Set --base-url to the public URL of the server, or add this name to its certificate with --tls-san.',
  })
}

/** A path of this server; anything else would be an open redirect. */
export function returnPath(wanted: string | null | undefined): string | undefined {
  return wanted && /^\/(?![/\\])[\x21-\x5b\x5d-\x7e]{0,1000}$/.test(wanted) ? wanted : undefined
}

export const addressOf = ({ guard }: SignInContext, { request }: Exchange): string => guard.addressOf(request)

/** The address of the client, for people to recognise. */
export const shownAddress = ({ guard }: SignInContext, { request }: Exchange): string =>
  guard.sourcesOf(request)[0] ?? 'unknown'

export const secret = ({ random }: SignInContext): string => Buffer.from(random(32)).toString('base64url')

/** Notes the result for the audit log. */
export function note({ auditContext }: Exchange, facts: { readonly [name: string]: string }): void {
  if (!auditContext) return
  const named = Object.entries(facts).map(([name, value]) => [`authentication.platform.sh/${name}`, value])
  auditContext.noted = { ...auditContext.noted, ...Object.fromEntries(named) }
}

/** The name that a machine sends: printable, and short enough for a page. */
export function machineName(given: string | null | undefined): string {
  const shown = (given ?? '')
    .replace(/[^\x20-\x7e]/g, '')
    .trim()
    .slice(0, 64)
  return shown === '' ? 'an unnamed machine' : shown
}
