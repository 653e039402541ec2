// Sign-in of machines: exchanges a token of a configured issuer for an access key (RFC 8693, D67).

import { ApiError, badRequest } from '../../api/errors.ts'
import { isGuess } from '../../auth/authn/authenticate.ts'
import { isJwtLike, maxTokenLength } from '../../auth/jwt/token-form.ts'
import { type Answer, errorHeaders, statusOf } from '../../serving/respond.ts'
import { checkGuess } from '../../serving/unknown-key-limiter.ts'
import { addressOf, note, type Route } from './context.ts'
import { json } from './page.ts'
import { readForm } from './read-form.ts'

export const tokenPath = '/auth/token'

const grant = 'urn:ietf:params:oauth:grant-type:token-exchange'
const typePrefix = 'urn:ietf:params:oauth:token-type:'
const accessTokenType = `${typePrefix}access_token`
const subjectTypes = [`${typePrefix}jwt`, `${typePrefix}id_token`]

/** An error with a code of RFC 6749 or RFC 8693. */
class OAuthError extends ApiError {
  readonly error: string
  constructor(error: string, message: string) {
    super(400, 'BadRequest', message)
    this.error = error
  }
}

export const tokenRoute: Route = async (context, exchange) => {
  const { guard, exchangeToken } = context
  const token = subjectTokenIn(await readForm(exchange))
  if (!exchangeToken) throw badRequest('no issuer of machine tokens is configured on this server')
  const address = addressOf(context, exchange)
  checkGuess(guard, address)
  const header = `Bearer ${token}`
  try {
    await context.prepare(header, undefined, () => address)
    const caller = context.authenticate(header, true)
    if (caller?.issuer === undefined) throw badRequest('subject_token is not a token of a configured issuer')
    const { secret, name, issuer, ttl } = await exchangeToken(caller)
    context.report(issuer, 'Success')
    note(exchange, { user: caller.username, provider: issuer, key: name, result: 'Exchanged' })
    return json(200, {
      access_token: secret,
      issued_token_type: accessTokenType,
      token_type: 'Bearer',
      expires_in: ttl,
    })
  } catch (error) {
    if (isGuess(error)) guard.failed(address)
    if (error instanceof ApiError && error.code < 429) context.report('', 'InvalidToken', error)
    throw error
  }
}

function subjectTokenIn(form: URLSearchParams): string {
  const type = form.get('grant_type')
  if (!type) throw badRequest('grant_type is missing')
  if (type !== grant) throw new OAuthError('unsupported_grant_type', `grant_type must be ${grant}`)
  const token = form.get('subject_token')
  if (!token) throw badRequest('subject_token is missing')
  if (!subjectTypes.includes(form.get('subject_token_type') ?? ''))
    throw badRequest(`subject_token_type must be ${subjectTypes.join(' or ')}`)
  if ((form.get('requested_token_type') ?? accessTokenType) !== accessTokenType)
    throw badRequest(`requested_token_type must be ${accessTokenType}`)
  if (form.has('actor_token')) throw badRequest('actor_token is not supported')
  // The rule of the issuer decides. A client must not believe that it got less.
  if (form.has('scope')) throw new OAuthError('invalid_scope', 'scope is not supported: auth.yaml decides the scope')
  for (const field of ['audience', 'resource'])
    if (form.has(field)) throw new OAuthError('invalid_target', `${field} is not supported: the key is for this server`)
  if (token.length > maxTokenLength) throw badRequest(`subject_token is longer than ${maxTokenLength} bytes`)
  if (!isJwtLike(token)) throw badRequest('subject_token is not a JWT')
  return token
}

/** RFC 6749, section 5.2. An invalid subject token is an invalid request (RFC 8693, section 2.2.2). */
export function tokenError(error: ApiError): Answer {
  const status = statusOf(error)
  const code = status.code === 401 ? 400 : status.code
  const word =
    error instanceof OAuthError
      ? error.error
      : code === 429 || code >= 500
        ? 'temporarily_unavailable'
        : 'invalid_request'
  return json(code, { error: word, error_description: error.message }, errorHeaders(status))
}
