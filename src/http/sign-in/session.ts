// The session of the browser: who is signed in, sign-out here, everywhere and at the provider, and back-channel logout.

import { ApiError } from '../../api/errors.ts'
import { ProviderError } from '../../auth/oidc/provider-error.ts'
import type { Exchange } from '../../serving/exchange.ts'
import { note, ownUrl, type Route, type SignInContext, sessionOf } from './context.ts'
import { cookieIn, setCookie, signedOutCookie } from './cookies.ts'
import { html } from './html.ts'
import { json, page, redirect } from './page.ts'
import { readForm } from './read-form.ts'
import { checkSameOrigin } from './same-origin.ts'

const wantsJson = ({ request }: Exchange) => String(request.headers.accept ?? '').includes('application/json')

const teamGroup = 'platform:team:'

export const sessionRoute: Route = async (context, exchange) => {
  const session = await sessionOf(context, exchange)
  const isScript = wantsJson(exchange)
  if (!session) {
    if (!isScript) return redirect('login')
    throw new ApiError(401, 'Unauthorized', 'not signed in')
  }
  const { caller, secret } = session
  const end = context.keyEnds(secret)
  const teams = caller.groups.filter(group => group.startsWith(teamGroup)).map(group => group.slice(teamGroup.length))
  const groups = caller.groups.filter(group => !/^(platform|system):/.test(group))
  const expires = end === undefined ? undefined : new Date(end).toISOString()
  if (isScript) return json(200, { user: caller.username, key: caller.key, groups, teams, expires })
  const list = (names: readonly string[]) => (names.length ? names.join(', ') : 'none')
  return page({
    title: 'You are signed in',
    body: html`<dl><dt>User</dt><dd>${caller.username}</dd><dt>Teams</dt><dd>${list(teams)}</dd>
<dt>Groups</dt><dd>${list(groups)}</dd><dt>Ends</dt><dd>${expires === undefined ? 'never' : `${expires.slice(0, 16).replace('T', ' ')} UTC`}</dd></dl>
<div class="stack"><form method="post" action="logout"><button>Sign out</button></form>
<form method="post" action="logout?everywhere=true"><button class="plain">Sign out everywhere</button></form></div>`,
    formTargets: await logoutTargets(context),
  })
}

/** After sign-out the browser goes to the provider. */
async function logoutTargets({ providers }: SignInContext): Promise<string[]> {
  const origins = providers.list().map(({ config }) => new URL(config.url).origin)
  return [...new Set(origins)]
}

export const logoutRoute: Route = async (context, exchange) => {
  checkSameOrigin(exchange, context.publicUrl)
  const secret = cookieIn(exchange.request.headers.cookie, context.sessionCookie()) ?? ''
  const isEverywhere = exchange.query.get('everywhere') === 'true'
  const ended = await context.sessions.end(secret, { isEverywhere })
  note(exchange, { user: ended?.username ?? '', result: isEverywhere ? 'SignedOutEverywhere' : 'SignedOut' })
  const provider = ended?.provider === undefined ? undefined : context.providers.get(ended.provider)
  const logoutUrl = async () =>
    provider?.logoutUrl({ idToken: ended?.idToken ?? '', returnTo: `${ownUrl(context, exchange)}/auth/login` })
  // A provider that does not answer must not keep anybody signed in here.
  const url = await logoutUrl().catch(() => undefined)
  const headers = { 'Set-Cookie': [setCookie(context.sessionCookie(), '', 0), signedOutCookie] }
  // A script cannot follow a redirect to another site, so the page goes there itself.
  if (wantsJson(exchange)) return json(200, { location: url?.href }, headers)
  return redirect(url?.href ?? 'login', headers)
}

const usedFor = 600
const maxUsed = 10_000

/** OpenID Connect Back-Channel Logout 1.0: the provider says that a session has ended. */
export const backchannelRoute: Route = async (context, exchange, name) => {
  const provider = context.providers.get(name)
  if (!provider) return json(404, { error: 'invalid_request', error_description: 'unknown provider' })
  const token = (await readForm(exchange)).get('logout_token') ?? ''
  try {
    const { sid, subject, jti } = await provider.verifyLogoutToken(token)
    const id = `${name} ${jti}`
    if (context.states.get('logout', id))
      throw new ProviderError('InvalidResponse', 'the logout token was used already')
    const count = await context.sessions.endAt(name, { sid, subject })
    // Afterwards, so that the provider can repeat a logout that failed halfway.
    await context.states.claim('logout', id, { ttl: usedFor, max: maxUsed })
    note(exchange, { provider: name, result: 'LoggedOut', sessions: String(count) })
    return json(200, {})
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error
    context.report(name, 'InvalidLogoutToken', error)
    note(exchange, { provider: name, result: 'InvalidLogoutToken' })
    // The provider retries a 5xx, and must not give up because its keys could not be fetched.
    const code = error.code === 'Unavailable' ? 503 : 400
    return json(code, { error: 'invalid_request', error_description: error.message })
  }
}
