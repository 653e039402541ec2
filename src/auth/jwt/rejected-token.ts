// The error for a rejected token of an external issuer. If the issuer signed it, the audit log names its user.

import { type ApiError, unauthorized } from '../../api/errors.ts'
import type { JsonObject } from '../../api/object.ts'
import { RejectedCredential } from '../authn/rejected-credential.ts'
import { agentIn } from './agent-identity.ts'
import { MappingError } from './claim-mapping.ts'
import { UnknownToken } from './token-form.ts'
import { type Issuer, JwtError, RejectedClaims } from './verify.ts'

/** `issuer`: the one that the token names, if it is configured. Returns a function, because each request needs its own error. */
export function rejectionOf(error: JwtError | MappingError, issuer: Issuer | undefined): () => ApiError {
  const { message } = error
  if (error instanceof JwtError && error.isGuess) return () => new UnknownToken(message)
  const username = error instanceof RejectedClaims && issuer ? usernameIn(issuer, error.claims) : undefined
  return () => (username === undefined ? unauthorized(message) : new RejectedCredential(message, { username }))
}

function usernameIn({ config: { agent, mapping } }: Issuer, claims: JsonObject): string | undefined {
  try {
    return agentIn(agent, claims) ?? mapping.map(claims).username
  } catch (error) {
    if (error instanceof MappingError) return undefined
    throw error
  }
}
