// The routes below /auth. Errors are pages for browsers, and Status objects for programs.

import { ApiError, methodNotAllowed, unknownPath } from '../../api/errors.ts'
import type { Exchange } from '../../serving/exchange.ts'
import { type Answer, errorHeaders, statusOf } from '../../serving/respond.ts'
import { cliRoute, cliTokenRoute, confirmCliRoute } from './cli.ts'
import { addressOf, type Bucket, type Route, type SignInContext, SignInError } from './context.ts'
import { cookieIn } from './cookies.ts'
import { decideDeviceRoute, deviceCodeRoute, deviceRoute, deviceTokenRoute } from './device.ts'
import { html } from './html.ts'
import { callbackRoute, chooseRoute, keyRoute, providersRoute, startRoute } from './login.ts'
import { page } from './page.ts'
import { backchannelRoute, logoutRoute, sessionRoute } from './session.ts'
import { tokenError, tokenPath, tokenRoute } from './token.ts'

/** `*` stands for one part of the path, which the route gets. */
const routes: { readonly [path: string]: { readonly [method: string]: Route } } = {
  '/auth/providers': { GET: providersRoute },
  '/auth/login': { GET: chooseRoute },
  '/auth/login/*': { GET: startRoute },
  '/auth/callback/*': { GET: callbackRoute },
  '/auth/key': { POST: keyRoute },
  '/auth/session': { GET: sessionRoute },
  '/auth/logout': { POST: logoutRoute },
  '/auth/backchannel-logout/*': { POST: backchannelRoute },
  '/auth/cli': { GET: cliRoute, POST: confirmCliRoute },
  '/auth/cli/token': { POST: cliTokenRoute },
  '/auth/device': { GET: deviceRoute, POST: decideDeviceRoute },
  '/auth/device/code': { POST: deviceCodeRoute },
  '/auth/device/token': { POST: deviceTokenRoute },
  [tokenPath]: { POST: tokenRoute },
}

export const isSignInPath = (path: string): boolean => path === '/auth' || path.startsWith('/auth/')

export type SignInPages = (exchange: Exchange) => Promise<Answer>

export function openSignInPages(context: SignInContext): SignInPages {
  return async exchange => {
    try {
      const { path, method } = exchange
      if (!isSignedIn(context, exchange)) context.limit(bucketOf(path), addressOf(context, exchange))
      const [, name] = /^\/auth\/(?:login|callback|backchannel-logout)\/([a-z0-9-]{1,63})$/.exec(path) ?? []
      const found = routes[name === undefined ? path : `${path.slice(0, -name.length)}*`]
      if (!found) throw unknownPath()
      const route = found[method]
      if (!route) throw methodNotAllowed(method.toLowerCase(), { group: '', plural: path, kind: path })
      return await route(context, exchange, name ?? '')
    } catch (error) {
      if (exchange.path === tokenPath && exchange.method === 'POST' && error instanceof ApiError) {
        if (exchange.auditContext) exchange.auditContext.reason = error.message
        return tokenError(error)
      }
      if (!wantsPage(exchange)) throw error
      if (!(error instanceof ApiError)) throw error
      if (exchange.auditContext) exchange.auditContext.reason = error.message
      return errorPage(error, exchange.path)
    }
  }
}

/** Floods of one kind of request must not stop the others, such as the logout that a provider sends. */
const bucketOf = (path: string): Bucket =>
  path.startsWith('/auth/backchannel-logout/') ? 'logout' : path === '/auth/device/code' ? 'device' : 'other'

function isSignedIn({ authenticate, sessionCookie }: SignInContext, { request }: Exchange): boolean {
  const secret = cookieIn(request.headers.cookie, sessionCookie())
  if (secret === undefined) return false
  try {
    return authenticate(`Bearer ${secret}`, true) !== undefined
  } catch {
    return false
  }
}

const wantsPage = ({ request }: Exchange) => String(request.headers.accept ?? '').includes('text/html')

function errorPage(error: ApiError, path: string): Answer {
  const status = statusOf(error)
  const [title, advice, link] =
    error instanceof SignInError ? [error.title, error.advice, error.link] : ['That did not work', error.message]
  const { href, text } = link ?? {
    href: `${'../'.repeat(Math.max(0, path.split('/').length - 3))}login`,
    text: 'Back to sign-in',
  }
  return page({
    code: status.code,
    title,
    body: html`<p>${advice}</p><p class="quiet">Code: <code>${status.reason}</code></p>
<a class="button" href="${href}">${text}</a>`,
    headers: errorHeaders(status),
  })
}
