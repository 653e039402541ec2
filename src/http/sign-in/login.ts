// Sign-in in the browser: choice of the provider, authorization code with PKCE, and pasted access keys.

import { hash, timingSafeEqual } from 'node:crypto'
import { ApiError } from '../../api/errors.ts'
import { isGuess } from '../../auth/authn/authenticate.ts'
import type { SignedIn } from '../../auth/oidc/provider.ts'
import { ProviderError } from '../../auth/oidc/provider-error.ts'
import type { Exchange } from '../../serving/exchange.ts'
import type { Answer } from '../../serving/respond.ts'
import { checkGuess } from '../../serving/unknown-key-limiter.ts'
import {
  machineName,
  note,
  ownUrl,
  providerNamed,
  type Route,
  returnPath,
  type SignInContext,
  SignInError,
  secret,
} from './context.ts'
import { cookieIn, setCookie } from './cookies.ts'
import { html } from './html.ts'
import { json, page, redirect } from './page.ts'
import { readForm } from './read-form.ts'
import { checkSameOrigin } from './same-origin.ts'

/** Seconds that a person has for the provider's pages. */
const pendingFor = 600
const defaultReturn = '/console/'
/** State of a login, in a cookie of the browser that started it. */
const pendingCookie = '__Host-platform-login'
const purpose = 'login'
const maxUsedStates = 10_000

type Pending = {
  readonly provider: string
  readonly state: string
  readonly nonce: string
  readonly codeVerifier: string
  readonly redirectUri: string
  readonly back: string
  /** Milliseconds. */
  readonly until: number
}

export const providersRoute: Route = ({ providers, pastedKeys }) =>
  json(200, {
    providers: providers.list().map(({ config: { name, displayName } }) => ({ name, displayName })),
    device: providers.list().length > 0,
    pastedKeys,
  })

export const chooseRoute: Route = ({ providers, pastedKeys }, { query }) => {
  const back = returnPath(query.get('return'))
  const suffix = back === undefined ? '' : `?return=${encodeURIComponent(back)}`
  const all = providers.list()
  const links = all.map(
    ({ config: { name, displayName } }) =>
      html`<a class="button" href="login/${encodeURIComponent(name)}${suffix}">Sign in with ${displayName}</a>`,
  )
  const form = html`<form method="post" action="key${suffix}" class="stack">
<div><label for="key">Access key</label><input id="key" name="key" type="password" autocomplete="off" required maxlength="3000"></div>
<button class="${all.length > 0 ? 'plain' : ''}">Sign in with an access key</button></form>`
  const none = html`<p class="quiet">No way to sign in is configured on this server. Use the command line with an access key.</p>`
  return page({
    title: 'Sign in',
    body: html`<div class="stack">${links}</div>
${all.length > 0 && pastedKeys && html`<hr>`}
${pastedKeys && form}
${all.length === 0 && !pastedKeys && none}`,
  })
}

export const startRoute: Route = async (context, exchange, name) => {
  const provider = providerNamed(context, name)
  const { query } = exchange
  const pending: Pending = {
    provider: name,
    state: secret(context),
    nonce: secret(context),
    codeVerifier: secret(context),
    redirectUri: `${ownUrl(context, exchange)}/auth/callback/${encodeURIComponent(name)}`,
    back: returnPath(query.get('return')) ?? defaultReturn,
    until: context.now() + pendingFor * 1000,
  }
  const hint = query.get('hint')
  try {
    const url = await provider.authorizationUrl({ ...pending, ...(hint ? { loginHint: hint.slice(0, 200) } : {}) })
    const sealed = context.seal(purpose, JSON.stringify(pending))
    return redirect(url.href, { 'Set-Cookie': setCookie(pendingCookie, sealed, pendingFor) })
  } catch (error) {
    throw failure(context, exchange, { provider: name, error })
  }
}

export const callbackRoute: Route = async (context, exchange, name) => {
  const provider = providerNamed(context, name)
  const pending = pendingOf(context, exchange)
  if (!pending || pending.provider !== name || !isSame(exchange.query.get('state') ?? '', pending.state))
    throw interrupted(context, name)
  try {
    const callback = new URL(`${pending.redirectUri}?${exchange.query}`)
    const person = await provider.exchange(callback, pending)
    // Not every provider notices a code that is used twice. Requests with invented codes do not come this far, and store nothing.
    if (!(await context.states.claim('state', pending.state, { ttl: pendingFor, max: maxUsedStates })))
      throw interrupted(context, name)
    const session = await context.sessions.create(provider, person, browserName(exchange))
    report(context, exchange, { provider: name, person, username: session.username })
    const seconds = (session.expires - context.now()) / 1000
    const cookies = [setCookie(pendingCookie, '', 0), setCookie(context.sessionCookie(), session.secret, seconds)]
    return redirect(relative(pending.back), { 'Set-Cookie': cookies })
  } catch (error) {
    // The command line still waits, so another account can sign in.
    throw failure(context, exchange, { provider: name, error, back: pending.back })
  }
}

/** From `/auth/callback/<provider>`, so that it works behind a prefix. */
const relative = (path: string) => `../..${path}`

function pendingOf(context: SignInContext, { request }: Exchange): Pending | undefined {
  const sealed = cookieIn(request.headers.cookie, pendingCookie)
  const text = sealed === undefined ? undefined : context.unseal(purpose, sealed)
  if (text === undefined) return undefined
  const pending = JSON.parse(text) as Pending
  return pending.until > context.now() ? pending : undefined
}

const digest = (text: string) => Buffer.from(hash('sha256', text, 'hex'))
const isSame = (one: string, other: string) => timingSafeEqual(digest(one), digest(other))

function interrupted({ report }: SignInContext, provider: string): SignInError {
  report(provider, 'StateMismatch')
  return new SignInError(400, {
    reason: 'StateMismatch',
    title: 'The sign-in was not started here',
    advice: 'It was started in another browser, took longer than ten minutes, or was used already. Start again.',
  })
}

type Success = { readonly provider: string; readonly person: SignedIn; readonly username: string }

function report(context: SignInContext, exchange: Exchange, { provider, person, username }: Success): void {
  context.report(provider, 'Success')
  note(exchange, { user: username, provider, issuer: person.issuer, result: 'Success' })
}

const titles = {
  Unavailable: 'The identity provider does not answer',
  InvalidGrant: 'The identity provider refused the sign-in',
  InvalidResponse: 'The identity provider sent an invalid answer',
  Rejected: 'You cannot sign in with this account',
} as const

/** `back`: the page that started the sign-in. */
type Failed = { readonly provider: string; readonly error: unknown; readonly back?: string }

/** A page for people. The reason for operators is in the log. */
function failure(context: SignInContext, exchange: Exchange, { provider, error, back }: Failed): unknown {
  const isExpected = error instanceof ProviderError || error instanceof ApiError
  if (!isExpected) return error
  const reason = error instanceof ProviderError ? error.code : (error.status.reason ?? '')
  note(exchange, { provider, result: reason })
  // The code that throws it has reported it.
  if (error instanceof SignInError) return error
  context.report(provider, reason, error)
  const href = back && `../login?return=${encodeURIComponent(back)}`
  const link = href ? { href, text: 'Back to sign-in' } : undefined
  if (error instanceof ApiError)
    return new SignInError(error.code, {
      reason,
      title: error.code === 403 ? titles.Rejected : 'The sign-in failed',
      advice: error.message,
      link,
    })
  const isProvider = error.code === 'Unavailable' || error.code === 'InvalidResponse'
  return new SignInError(isProvider ? 502 : 403, { reason, title: titles[error.code], advice: error.message, link })
}

/** A browser says what it is at length; the product and system are enough to recognise a session. */
function browserName({ request }: Exchange): string {
  const agent = String(request.headers['user-agent'] ?? '')
  const product = /(Firefox|Edg|Chrome|Safari)\//.exec(agent)?.[1]?.replace('Edg', 'Edge') ?? 'Browser'
  const system = /(Windows|Macintosh|Android|iPhone|iPad|Linux)/.exec(agent)?.[1]?.replace('Macintosh', 'macOS')
  return machineName(system === undefined ? product : `${product} on ${system}`)
}

/** The cookie holds the key, so the session has its owner, scope and expiry, and ends with it. */
export const keyRoute: Route = async (context, exchange): Promise<Answer> => {
  if (!context.pastedKeys)
    throw new SignInError(403, {
      reason: 'PastedKeysDisabled',
      title: 'Access keys cannot be used here',
      advice: 'Choose an identity provider.',
    })
  // Otherwise another site could sign a person in with a key of its own.
  checkSameOrigin(exchange, context.publicUrl)
  const key = (await readForm(exchange)).get('key')?.trim() ?? ''
  const back = returnPath(exchange.query.get('return')) ?? defaultReturn
  const { guard } = context
  try {
    if (key.length > maxKey) throw new ApiError(401, 'Unauthorized', 'the key is too long for a browser session')
    await context.prepare(`Bearer ${key}`)
    const caller = context.authenticate(`Bearer ${key}`)
    note(exchange, { user: caller?.username ?? '', provider: 'access-key', result: 'Success' })
  } catch (error) {
    if (isGuess(error)) {
      const address = guard.addressOf(exchange.request)
      checkGuess(guard, address)
      guard.failed(address)
    }
    throw failure(context, exchange, { provider: 'access-key', error })
  }
  context.report('access-key', 'Success')
  const end = context.keyEnds(key)
  const seconds = end === undefined ? undefined : (end - context.now()) / 1000
  return redirect(`..${back}`, { 'Set-Cookie': setCookie(context.sessionCookie(), key, seconds) })
}

const maxKey = 3000
