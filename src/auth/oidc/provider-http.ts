// Requests to a provider, over the connections that the server opens for it.

import { isObject, type Json, type JsonObject } from '../../api/object.ts'
import { ProviderError } from './provider-error.ts'

export type ProviderRequest = {
  readonly method: string
  readonly headers: { readonly [name: string]: string }
  readonly body?: string | undefined
  readonly signal?: AbortSignal | undefined
}

/** Follows no redirects. Limits size and time. Rejects with ApiError 503 if the provider is unreachable. */
export type ProviderHttp = {
  send(url: string, request: ProviderRequest): Promise<Pick<Response, 'status' | 'headers' | 'text'>>
  close(): void
}

/** A response that is complete after this time. */
const within = 20_000

/** Throws ProviderError. */
export async function fetchJson({ send }: ProviderHttp, url: string): Promise<Json> {
  const signal = AbortSignal.timeout(within)
  const response = await send(url, { method: 'GET', headers: { Accept: 'application/json' }, signal })
  const { status } = response
  checkAvailable(url, status)
  if (status !== 200)
    throw new ProviderError('InvalidResponse', `${url} returned ${status}; check issuer.url and issuer.discoveryURL`)
  try {
    return JSON.parse(await response.text()) as Json
  } catch {
    throw new ProviderError('InvalidResponse', `${url} did not return JSON`)
  }
}

/** Throws ProviderError. */
export async function fetchDocument(http: ProviderHttp, url: string): Promise<JsonObject> {
  const value = await fetchJson(http, url)
  if (!isObject(value)) throw new ProviderError('InvalidResponse', `${url} did not return a JSON object`)
  return value
}

function checkAvailable(url: string, status: number): void {
  if (status < 500 && status !== 429) return
  throw new ProviderError('Unavailable', `${new URL(url).origin} returned ${status}`)
}

type Init = {
  readonly method: string
  readonly headers: Record<string, string>
  readonly body?: unknown
  readonly signal?: AbortSignal | undefined
}

/** `fetch` for openid-client. */
export const fetchOver =
  ({ send }: ProviderHttp) =>
  async (url: string, { method, headers, body, signal }: Init): Promise<Response> => {
    const response = await send(url, {
      method,
      headers,
      ...(body === undefined || body === null ? {} : { body: String(body) }),
      ...(signal ? { signal } : {}),
    })
    checkAvailable(url, response.status)
    const text = await response.text()
    // Without WWW-Authenticate, because openid-client would not look at the OAuth error in the body.
    const type = response.headers.get('Content-Type')
    return new Response(text === '' ? null : text, {
      status: response.status,
      headers: type === null ? {} : { 'Content-Type': type },
    })
  }
