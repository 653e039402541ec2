// Refuses requests of other web sites that carry the session cookie (design: sign-in, browser session).

import { ApiError } from '../../api/errors.ts'
import type { Exchange, Request } from '../../serving/exchange.ts'

/** The origin that the browser used: scheme and Host of the request. */
export function ownOrigin(request: Request): string {
  const isSecure = 'encrypted' in request.socket && request.socket.encrypted === true
  return `${isSecure ? 'https' : 'http'}://${hostOf(request)}`
}

const hostOf = ({ headers }: Request) => String(headers[':authority'] ?? headers.host ?? '')

/** `publicUrl`: the base URL of the server behind a proxy, or ''. */
export function checkSameOrigin({ request }: Pick<Exchange, 'request'>, publicUrl: string): void {
  if (!isSameOrigin(request, publicUrl))
    throw new ApiError(403, 'Forbidden', 'the session cookie is accepted only from pages of this server', {
      details: { causes: [{ reason: 'CrossSite', message: 'send an access key in the Authorization header instead' }] },
    })
}

function isSameOrigin(request: Request, publicUrl: string): boolean {
  const site = request.headers['sec-fetch-site']
  if (site !== undefined) return site === 'same-origin'
  const { origin } = request.headers
  if (origin === undefined) return false
  return origin === ownOrigin(request) || (publicUrl !== '' && origin === new URL(publicUrl).origin)
}

/** A link or a typed address. It shows a page, and changes nothing. */
export const isNavigation = ({ method, headers }: Request): boolean =>
  (method === 'GET' || method === 'HEAD') &&
  (headers['sec-fetch-mode'] === 'navigate' || headers['sec-fetch-mode'] === undefined)

/** A page says which user it was loaded for. Somebody else may have signed in to the browser since, in another tab. */
export function checkExpectedUser({ headers }: Request, username: string | undefined): void {
  const expected = headers['platform-user']
  if (expected === undefined || username === undefined) return
  if (expected !== encodeURIComponent(username))
    throw new ApiError(401, 'Unauthorized', 'somebody else has signed in to this browser; load the page again')
}
