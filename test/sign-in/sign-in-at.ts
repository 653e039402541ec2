// Signs in at a test provider as a browser does: follows redirects, keeps cookies, submits the name of an account.

/** Cookies by origin, as a browser keeps them. Pass the same jar twice to keep the session at the provider. */
export type CookieJar = Map<string, Map<string, string>>

/** Whether it is the redirect of the provider to the callback of the server. */
const isCallback = ({ searchParams }: URL) =>
  searchParams.has('state') && (searchParams.has('code') || searchParams.has('error'))

/**
 * Follows redirects from `url`, of the server or of the provider, and signs in as the account where a page has the field `account`.
 * Returns the URL of the callback, without a request to it.
 */
export async function signInAt(url: URL | string, account: string, jar: CookieJar = new Map()): Promise<URL> {
  let next = new URL(url)
  let form: URLSearchParams | undefined
  for (let step = 0; step < 20; step++) {
    const response = await fetch(next, {
      method: form ? 'POST' : 'GET',
      redirect: 'manual',
      headers: { Cookie: cookieOf(jar, next.origin) },
      ...(form ? { body: form } : {}),
    })
    keepCookies(jar, next.origin, response.headers.getSetCookie())
    const location = response.headers.get('Location')
    const text = await response.text()
    if (location) {
      next = new URL(location, next)
      form = undefined
      if (isCallback(next)) return next
    } else if (response.ok && text.includes('name="account"')) form = new URLSearchParams({ account })
    else throw new Error(`${response.status} from ${next.pathname}: ${text}`)
  }
  throw new Error('too many redirects')
}

export const cookieOf = (jar: CookieJar, origin: string) =>
  [...(jar.get(origin) ?? [])].map(([name, value]) => `${name}=${value}`).join('; ')

export function keepCookies(jar: CookieJar, origin: string, lines: readonly string[]): void {
  const cookies = jar.get(origin) ?? new Map<string, string>()
  jar.set(origin, cookies)
  for (const line of lines) {
    const [pair = ''] = line.split(';')
    const at = pair.indexOf('=')
    const [name, value] = [pair.slice(0, at), pair.slice(at + 1)]
    if (value === '') cookies.delete(name)
    else cookies.set(name, value)
  }
}
