// Sign-in of a workload: exchanges its token for a short-lived access key (RFC 8693, D67).

import { ApiError } from '../../api/errors.ts'
import type { Io } from '../../host/command.ts'
import { failedSignIn, keyIn, type SignInApi } from './sign-in-api.ts'
import { findWorkloadToken, type TokenFlags } from './workload-token.ts'

const tokenType = 'urn:ietf:params:oauth:token-type:jwt'

/** Returns the key. */
export async function loginWithWorkload(io: Io, api: SignInApi, flags: TokenFlags): Promise<string> {
  const { token, source, warning } = await findWorkloadToken(io, api.server, flags)
  io.err(`Using the token of ${source}.\n`)
  if (warning !== undefined) io.err(`platform: warning: ${warning}\n`)
  const request = {
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token: token,
    subject_token_type: tokenType,
  }
  const answer = await api.postForm('/auth/token', request).catch(error => {
    if (!(error instanceof ApiError) || error.code !== 404) throw error
    throw new ApiError(404, 'NotFound', `${api.server} does not exchange tokens: its version is too old`)
  })
  if (!answer.ok) throw failedSignIn(`${api.server} rejected the token of ${source}: ${answer.description}`)
  return keyIn(api.server, answer.body, 'access_token')
}
