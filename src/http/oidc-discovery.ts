// The public pages of the token issuer: OpenID Connect discovery and its key set (D31). Nobody needs a key to read them.

import { type Issuer, keySetPath, metadataPath } from '../auth/tokens/issuer.ts'
import type { Exchange } from '../serving/exchange.ts'
import type { Answer } from '../serving/respond.ts'
import { writeJson } from './write-result.ts'

/** A key is published a day before it signs, so an hour is soon enough. */
const headers = { 'Cache-Control': 'public, max-age=3600' }

export function issuerPages(issuer: Issuer): (path: string, exchange: Exchange) => Answer | undefined {
  return (path, exchange) => {
    if (path === metadataPath) return { ...writeJson(200, issuer.metadata(), 'json', exchange), headers }
    if (path !== keySetPath) return undefined
    return { ...writeJson(200, issuer.keySet(), 'json', exchange), type: 'application/jwk-set+json', headers }
  }
}
