// Names the user of a direct-cluster token that was sent to the management API, in the audit log only (D31).

import { MisplacedToken } from '../auth/authn/authenticate.ts'
import { rejectedCredential } from '../serving/audit-event.ts'
import type { Exchange } from '../serving/exchange.ts'
import type { Access } from './auth-filter.ts'

/** `error`: the error of the request. Runs after the response, which is the same for every token. */
export async function noteTokenUser({ issuer }: Access, exchange: Exchange, error: unknown): Promise<void> {
  const { auditContext, request } = exchange
  if (!auditContext || !(error instanceof MisplacedToken)) return
  const token = (request.headers.authorization ?? '').slice('Bearer '.length).trim()
  const claims = await issuer.signedClaims(token)
  if (!claims) return
  auditContext.noted = {
    ...rejectedCredential({ username: claims.sub }),
    'platform.sh/access-key-uid': claims['platform.sh'].key,
    'platform.sh/token': claims.jti,
  }
}
