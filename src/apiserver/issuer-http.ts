// Requests to external issuers and providers, with their CA, and with limits for size and time. Redirects are not followed.

import { ApiError } from '../api/errors.ts'
import type { Json } from '../api/object.ts'
import type { ProviderHttp } from '../auth/oidc/provider-http.ts'
import { openTransport } from '../transport/transport.ts'

export type IssuerHttpOptions = {
  readonly url: string
  /** PEM; undefined: the CAs of the system. */
  readonly ca: string | undefined
  readonly env: { readonly [name: string]: string | undefined }
  readonly now: () => number
  readonly maxBytes: number
  readonly times?: HttpTimes | undefined
}

/** Milliseconds. */
export type HttpTimes = {
  /** Until a response begins, and between its parts. */
  readonly answerWithin: number
  readonly completeWithin: number
}

const defaultTimes: HttpTimes = { answerWithin: 10_000, completeWithin: 20_000 }

export function openIssuerHttp(options: IssuerHttpOptions): ProviderHttp {
  const { url, ca, env, now, maxBytes, times: { answerWithin, completeWithin } = defaultTimes } = options
  const { fetch, close } = openTransport(
    { server: url, namespace: '', insecure: false, ...(ca === undefined ? {} : { ca: { text: ca } }) },
    { env, now, answerWithin, quietFor: answerWithin, maxBytes, caIs: 'issuer.certificateAuthority' },
  )
  const send: ProviderHttp['send'] = async (address, { body, ...request }) => {
    const { origin, searchParams } = new URL(address)
    // The transport would not limit a watch.
    if (searchParams.has('watch')) throw new ApiError(422, 'Issuer', `${address} must not have the parameter watch`)
    const signal = AbortSignal.timeout(completeWithin)
    return fetch(address, { ...request, ...(body === undefined ? {} : { body }), signal }).catch(error => {
      if (!signal.aborted) throw error
      const message = `cannot reach ${origin}: no complete response within ${completeWithin / 1000} s`
      throw new ApiError(503, 'ServiceUnavailable', message)
    })
  }
  return { send, close }
}

/** Rejects with ApiError. */
export const jsonOver =
  ({ send }: ProviderHttp) =>
  async (address: string): Promise<Json> => {
    const response = await send(address, { method: 'GET', headers: { Accept: 'application/json' } })
    const { status } = response
    if (status < 200 || status > 299) throw new ApiError(status, 'Issuer', `${address} returned ${status}`)
    try {
      return JSON.parse(await response.text()) as Json
    } catch {
      throw new ApiError(422, 'Issuer', `${address} did not return JSON`)
    }
  }
