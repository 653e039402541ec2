// Client of the sign-in routes of the server below /auth, which need no key.

import { ApiError } from '../../api/errors.ts'
import { isObject, type JsonObject } from '../../api/object.ts'
import { errorFrom, errorOf } from '../../client/response-error.ts'
import type { Io } from '../../host/command.ts'
import { openConnection, type TrustedServer } from '../session.ts'

/** A response of OAuth: `error` is its code (RFC 6749, RFC 8628, RFC 8693). */
export type OAuthAnswer =
  | { readonly ok: true; readonly body: JsonObject }
  | { readonly ok: false; readonly error: string; readonly description: string }

export type SignInApi = {
  readonly server: string
  /** The names of the identity providers. Older servers have none. */
  providers(): Promise<readonly string[]>
  /** Sends JSON. Throws ApiError for an error that is not one of OAuth. */
  post(path: string, body: JsonObject): Promise<OAuthAnswer>
  /** Sends a form. */
  postForm(path: string, fields: { readonly [name: string]: string }): Promise<OAuthAnswer>
  close(): void
}

export function openSignInApi(io: Io, target: TrustedServer): SignInApi {
  const { server } = target
  const { fetch, close } = openConnection(io, target)
  const send = async (path: string, type: string, body: string): Promise<OAuthAnswer> => {
    const headers = { Accept: 'application/json', 'Content-Type': type }
    const response = await fetch(`${server}${path}`, { method: 'POST', headers, body })
    const answer = await bodyOf(response)
    if (response.ok && answer) return { ok: true, body: answer }
    const { error, error_description: description } = answer ?? {}
    if (typeof error === 'string')
      return { ok: false, error, description: typeof description === 'string' ? description : error }
    throw errorFrom(response, answer)
  }
  return {
    server,
    async providers() {
      const response = await fetch(`${server}/auth/providers`, { headers: { Accept: 'application/json' } })
      if (response.status === 404) return []
      if (!response.ok) throw await errorOf(response)
      const { providers = [] } = (await bodyOf(response)) ?? {}
      if (!Array.isArray(providers)) return []
      return providers.flatMap(one => (isObject(one) && typeof one['name'] === 'string' ? [one['name']] : []))
    },
    post: (path, body) => send(path, 'application/json', JSON.stringify(body)),
    postForm: (path, fields) => send(path, 'application/x-www-form-urlencoded', new URLSearchParams(fields).toString()),
    close,
  }
}

async function bodyOf(response: Response): Promise<JsonObject | undefined> {
  try {
    const body: unknown = await response.json()
    return isObject(body) ? (body as JsonObject) : undefined
  } catch {
    return undefined
  }
}

/** Exit code 4. */
export const failedSignIn = (message: string) => new ApiError(401, 'Unauthorized', message)

export const invalidResponse = (server: string) =>
  new ApiError(502, 'BadGateway', `${server} sent an invalid response to the sign-in`)

/** The key in a response. Throws if it cannot be sent as a header. */
export function keyIn(server: string, body: JsonObject, field: string): string {
  const key = body[field]
  if (typeof key === 'string' && /^[\x21-\x7e]{1,4000}$/.test(key)) return key
  throw invalidResponse(server)
}
