// A browser without a window for tests of sign-in: keeps cookies, follows redirects, submits forms, sends the headers of a browser.

import { once } from 'node:events'
import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { type CookieJar, cookieOf, keepCookies, signInAt } from './sign-in-at.ts'

export type Page = {
  readonly status: number
  readonly url: URL
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** The hidden fields of the page. */
  readonly fields: { readonly [name: string]: string }
}

export type Browser = {
  readonly jar: CookieJar
  /** Opens a page, and follows redirects on the same server. */
  open(path: string, headers?: Headers): Promise<Page>
  /** Submits a form of a page on the same server. Does not follow the redirect. */
  submit(path: string, form: Fields, headers?: Headers): Promise<Page>
  /** A request of a script on a page of the server. */
  call(method: string, path: string, options?: { readonly body?: unknown; readonly headers?: Headers }): Promise<Page>
  signIn(account: string, back?: string): Promise<Page>
  /** The cookies for the server, by name. */
  cookies(): { readonly [name: string]: string }
}

type Headers = { readonly [name: string]: string }
type Fields = { readonly [name: string]: string }

const navigation = { accept: 'text/html', 'sec-fetch-mode': 'navigate', 'sec-fetch-site': 'none' }

export function openBrowser(origin: string, jar: CookieJar = new Map()): Browser {
  async function send(method: string, url: URL, headers: Headers, body?: string): Promise<Page> {
    const cookie = cookieOf(jar, origin)
    const call = httpRequest(url, {
      method,
      headers: {
        ...(cookie ? { cookie } : {}),
        ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
        ...headers,
      },
    })
    call.end(body)
    const [response] = (await once(call, 'response')) as [IncomingMessage]
    let text = ''
    for await (const chunk of response.setEncoding('utf8')) text += chunk
    keepCookies(jar, origin, response.headers['set-cookie'] ?? [])
    const fields = text.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)">/g)
    return {
      status: response.statusCode ?? 0,
      url,
      headers: response.headers,
      text,
      fields: Object.fromEntries([...fields].map(([, name, value]) => [name, value])),
    }
  }

  const open: Browser['open'] = async (path, headers = {}) => {
    let page = await send('GET', new URL(path, origin), { ...navigation, ...headers })
    for (let step = 0; step < 5 && page.headers.location !== undefined; step++) {
      const next = new URL(page.headers.location, page.url)
      if (next.origin !== origin) return page
      page = await send('GET', next, { ...navigation, ...headers })
    }
    return page
  }
  return {
    jar,
    open,
    submit: (path, form, headers = {}) =>
      send(
        'POST',
        new URL(path, origin),
        {
          ...navigation,
          'sec-fetch-site': 'same-origin',
          origin,
          'content-type': 'application/x-www-form-urlencoded',
          ...headers,
        },
        new URLSearchParams(form).toString(),
      ),
    call: (method, path, { body, headers = {} } = {}) =>
      send(
        method,
        new URL(path, origin),
        {
          'sec-fetch-mode': 'cors',
          'sec-fetch-site': 'same-origin',
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        body === undefined ? undefined : JSON.stringify(body),
      ),
    async signIn(account, back) {
      const query = back === undefined ? '' : `?return=${encodeURIComponent(back)}`
      const callback = await signInAt(`${origin}/auth/login/corp${query}`, account, jar)
      return open(callback.href)
    },
    cookies: () => Object.fromEntries(jar.get(origin) ?? []),
  }
}
