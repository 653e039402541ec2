// Exchanges a token for an access key, for tests of machines.

import type { Server } from '../support/server.ts'

export const exchangeGrant = 'urn:ietf:params:oauth:grant-type:token-exchange'
export const jwtType = 'urn:ietf:params:oauth:token-type:jwt'

export type Exchanged = {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came, and fail where it is something else
  readonly body: any
}

/** Sends a form to /auth/token. An undefined field is left out. */
export async function exchange(
  server: Pick<Server, 'http'>,
  token: string | undefined,
  fields: { readonly [name: string]: string | undefined } = {},
  headers: Record<string, string> = {},
): Promise<Exchanged> {
  const all = { grant_type: exchangeGrant, subject_token: token, subject_token_type: jwtType, ...fields }
  const form = new URLSearchParams(Object.entries(all).filter((one): one is [string, string] => one[1] !== undefined))
  return sendForm(server, form, headers)
}

export async function sendForm(
  server: Pick<Server, 'http'>,
  body: URLSearchParams | string,
  headers: Record<string, string> = {},
): Promise<Exchanged> {
  const response = await fetch(`${server.http}/auth/token`, { method: 'POST', body, headers })
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.includes('json')
  return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : undefined }
}

/** The key of an exchange that must succeed. */
export async function keyOf(server: Pick<Server, 'http'>, token: string): Promise<string> {
  const { status, text, body } = await exchange(server, token)
  if (status !== 200) throw new Error(`${status}: ${text}`)
  return body.access_token
}
