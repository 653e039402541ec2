// Requests to the server: base URL, clients for objects and table rows, and the session of the browser.

import { ApiError } from '../../api/errors.ts'
import { connect, type Fetch } from '../../client/connect.ts'
import { rowsFrom } from '../../client/table-rows.ts'
import { text } from '../text/common.ts'

/** The server writes <base>, so this is right behind any prefix. It ends with `/console/`. */
export const consoleUrl = new URL(document.baseURI)
export const serverUrl = new URL('..', consoleUrl)
export const basePath = consoleUrl.pathname.replace(/\/$/, '')

let user: string | undefined

/** Every request says for whom the page was loaded. If somebody else signs in to the browser, the server refuses it. */
export function bindUser(name: string): void {
  user = name
}
export const boundUser = (): string => user ?? ''

type Listener = () => void
const onExpired = new Set<Listener>()

/** Called when the server says that the session has ended. Returns a function that stops it. */
export function followExpiry(callback: Listener): () => void {
  onExpired.add(callback)
  return () => onExpired.delete(callback)
}

/** A write needs no values of secrets in its response, so nobody has revealed them. Other kinds ignore the parameter. */
const masked = (url: string, { method = 'GET' }: RequestInit): string =>
  method === 'GET' ? url : `${url}${url.includes('?') ? '&' : '?'}omitData=true`

/** Sends the session cookie, which the page itself cannot read. */
const send: Fetch = async (url, init) => {
  const headers = { ...(init.headers as { [name: string]: string }), 'Platform-User': encodeURIComponent(boundUser()) }
  // Responses can contain values of secrets, which must not reach the cache of the browser.
  const response = await fetch(masked(url, init), { ...init, headers, credentials: 'same-origin', cache: 'no-store' })
  if (response.status === 401) for (const callback of onExpired) callback()
  return response
}

const url = serverUrl.href
export const server = connect({ url, fetch: send })
/** Rows: metadata and columns. Reading them is not a read of a secret (D35). */
export const rows = rowsFrom({ url, fetch: send })
export type Session = {
  readonly user: string
  readonly key: string
  readonly groups: readonly string[]
  readonly teams: readonly string[]
  readonly expires?: string
}

/** undefined: nobody is signed in. */
export async function readSession(): Promise<Session | undefined> {
  const response = await fetch(new URL('auth/session', serverUrl), { headers: { Accept: 'application/json' } })
  if (response.status === 401) return undefined
  if (!response.ok) throw new ApiError(response.status, 'Session', text.answered(response.status))
  return (await response.json()) as Session
}

export type SignInOptions = {
  readonly providers: readonly { readonly name: string; readonly displayName: string }[]
  readonly pastedKeys: boolean
}

export async function readSignInOptions(): Promise<SignInOptions> {
  const response = await fetch(new URL('auth/providers', serverUrl), { headers: { Accept: 'application/json' } })
  if (!response.ok) throw new ApiError(response.status, 'Providers', text.answered(response.status))
  return (await response.json()) as SignInOptions
}

/** The address of a sign-in page that leads back to a path below the console. */
export function signInUrl(provider: string | undefined, back: string): string {
  const to = new URL(provider === undefined ? 'auth/login' : `auth/login/${encodeURIComponent(provider)}`, serverUrl)
  to.searchParams.set('return', `/console/${back}`)
  return to.href
}

/** Throws ApiError with the server's message if the key is not accepted. */
export async function signInWithKey(key: string): Promise<void> {
  const response = await fetch(new URL('auth/key', serverUrl), {
    method: 'POST',
    headers: { Accept: 'application/json' },
    body: new URLSearchParams({ key }),
    redirect: 'manual',
  })
  if (response.type === 'opaqueredirect' || response.ok) return
  const status = (await response.json().catch(() => ({}))) as { readonly message?: string; readonly reason?: string }
  throw new ApiError(response.status, status.reason ?? 'Unauthorized', status.message ?? text.keyRejected)
}

/** Returns the page that ends the session at the provider; undefined: there is none. Throws ApiError if the session has not ended. */
export async function signOut(isEverywhere: boolean): Promise<string | undefined> {
  const query = isEverywhere ? '?everywhere=true' : ''
  const headers = { Accept: 'application/json' }
  const response = await fetch(new URL(`auth/logout${query}`, serverUrl), { method: 'POST', headers })
  const body = (await response.json().catch(() => ({}))) as { readonly location?: string; readonly message?: string }
  if (!response.ok) throw new ApiError(response.status, 'SignOut', body.message ?? text.answered(response.status))
  return body.location
}

/** For a GET that the client has no method for, such as a version of a secret. Throws ApiError. */
export async function getJson<T>(path: string): Promise<T> {
  const response = await send(new URL(`kubernetes/management${path}`, serverUrl).href, {
    headers: { Accept: 'application/json' },
  })
  const body = (await response.json().catch(() => ({}))) as T & { readonly message?: string; readonly reason?: string }
  if (!response.ok) throw new ApiError(response.status, body.reason ?? '', body.message ?? response.statusText)
  return body
}
