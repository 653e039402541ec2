// Errors of a provider, with a code that callers react to. Messages are for operators and contain no token.

import type { AuthorizationResponseError, ClientError, ResponseBodyError } from 'openid-client'
import { ApiError } from '../../api/errors.ts'
import { MappingError } from '../jwt/claim-mapping.ts'
import { JwtError, NoIssuerKeys } from '../jwt/verify.ts'

/**
 * Unavailable: network, timeout, 5xx; a retry may succeed.
 * InvalidGrant: the provider no longer accepts the code or refresh token.
 * InvalidResponse: the provider or its configuration is wrong, or somebody tampered with the response.
 * Rejected: the provider or auth.yaml does not let this person in.
 */
export type ProviderErrorCode = 'Unavailable' | 'InvalidGrant' | 'InvalidResponse' | 'Rejected'

export class ProviderError extends Error {
  readonly code: ProviderErrorCode
  constructor(code: ProviderErrorCode, message: string) {
    super(message)
    this.name = 'ProviderError'
    this.code = code
  }
}

const transient = ['server_error', 'temporarily_unavailable', 'slow_down']
/** OAuth errors with an advice. */
const advice: { readonly [error: string]: string } = {
  invalid_client: '; check clientID and the client secret',
  unauthorized_client: '; check the grant types of the client at the provider',
  invalid_scope: '; check scopes',
}

/** Translates an error of openid-client, of the transport, of verification or of mapping. Rethrows a bug. */
export function providerError(name: string, error: unknown): ProviderError {
  if (error instanceof ProviderError) return error
  const fail = (code: ProviderErrorCode, message: string) => new ProviderError(code, `provider ${name}: ${message}`)
  if (error instanceof MappingError) return fail('Rejected', error.message)
  if (error instanceof NoIssuerKeys) return fail('Unavailable', error.message)
  if (error instanceof JwtError) return fail('InvalidResponse', `invalid token: ${error.message}`)
  if (error instanceof ApiError) return fail(error.code === 503 ? 'Unavailable' : 'InvalidResponse', error.message)
  const { code, cause } = error as { readonly code?: string; readonly cause?: unknown }
  if (code === 'OAUTH_RESPONSE_BODY_ERROR' || code === 'OAUTH_AUTHORIZATION_RESPONSE_ERROR')
    return oauthError(fail, error as ResponseBodyError | AuthorizationResponseError)
  // openid-client wraps what the transport throws.
  if (cause instanceof ProviderError || cause instanceof ApiError) return providerError(name, cause)
  if (code?.startsWith('OAUTH_')) return fail('InvalidResponse', reasonOf(error as ClientError))
  throw error
}

type Fail = (code: ProviderErrorCode, message: string) => ProviderError

function oauthError(fail: Fail, one: ResponseBodyError | AuthorizationResponseError): ProviderError {
  const error = /^[\w.-]{1,64}$/.test(one.error) ? one.error : 'an invalid error code'
  const description = shown(one.error_description)
  const message = `returned ${error}${description && ` (${description})`}${advice[error] ?? ''}`
  if (transient.includes(error)) return fail('Unavailable', message)
  if (error === 'invalid_grant') return fail('InvalidGrant', message)
  // The person, or a policy of the provider, ended the sign-in.
  return fail(one.code === 'OAUTH_AUTHORIZATION_RESPONSE_ERROR' ? 'Rejected' : 'InvalidResponse', message)
}

/** A description may repeat what we sent, so long words are left out. */
const shown = (text: string | undefined): string =>
  (text ?? '')
    .replace(/[^\x20-\x7e]+/g, ' ')
    .replace(/\S{20,}/g, '…')
    .slice(0, 200)
    .trim()

/** Messages of the library are constant; the values are in the cause. */
function reasonOf(error: ClientError): string {
  const { cause } = error
  return cause instanceof Error && 'code' in cause ? `${error.message}: ${cause.message}` : error.message
}
