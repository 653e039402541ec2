// Recognizes tokens of external issuers by their form, without decoding them.

import { ApiError } from '../../api/errors.ts'

export const maxTokenLength = 16 * 1024
export const isSigned = (secret: string): boolean => /^[\w-]+\.[\w-]+\.[\w-]*$/.test(secret)
export const isEncrypted = (secret: string): boolean => /^[\w-]*(\.[\w-]*){4}$/.test(secret)

/** Whether something has the form of a JWT, so that it is worth verifying. JSON in base64 starts with e. */
export const isJwtLike = (secret: string): boolean =>
  secret.startsWith('e') && (isSigned(secret) || isEncrypted(secret))

/** A token that no issuer vouched for: it may be a guess. */
export class UnknownToken extends ApiError {
  constructor(message: string) {
    super(401, 'Unauthorized', message)
  }
}
