// Requests to a provider, over the connections that the server opens for it.

import { isObject, type Json, type JsonObject } from '../../api/object.ts'
import { ProviderError } from './provider-error.ts'

export type ProviderRequest = {
  readonly method: string
  readonly headers: { readonly [name: string]: string }
  readonly body?: string | undefined
}

/** Follows no redirects. Limits size and time. Rejects with ApiError 503 if the provider is unreachable. */
export type ProviderHttp = {
  send(url: string, request: ProviderRequest): Promise<Pick<Response, 'status' | 'headers' | 'text'>>
  close(): void
}

/** Throws ProviderError. */
export async function fetchJson({ send }: ProviderHttp, url: string): Promise<Json> {
  const response = await send(url, { method: 'GET', headers: { Accept: 'application/json' } })
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

/** A Response with one of these has no body, and openid-client expects none of them. */
const withoutBody = [204, 205, 304]

type Init = {
  readonly method: string
  readonly headers: Record<string, string>
  readonly body?: unknown
}

/** `fetch` for openid-client. */
export const fetchOver =
  ({ send }: ProviderHttp) =>
  async (url: string, { method, headers, body }: Init): Promise<Response> => {
    const response = await send(url, {
      method,
      headers,
      ...(body === undefined || body === null ? {} : { body: String(body) }),
    })
    const { status } = response
    checkAvailable(url, status)
    if (withoutBody.includes(status) || status < 200)
      throw new ProviderError('InvalidResponse', `${new URL(url).origin} returned ${status}`)
    const text = await response.text()
    // Without WWW-Authenticate, because openid-client would not look at the OAuth error in the body.
    const type = response.headers.get('Content-Type')
    return new Response(text, { status, headers: type === null ? {} : { 'Content-Type': type } })
  }
