// The ids of tokens of external issuers: for revocations, and to recognise a token that was used.

import { hash } from 'node:crypto'
import type { JsonObject } from '../../api/object.ts'

const longestId = 128

export const jtiIn = ({ jti }: JsonObject): string | undefined =>
  typeof jti === 'string' && jti !== '' ? jti : undefined

/**
 * The `key` of direct-cluster tokens that this token mints (D31). It has no characters that a header cannot have. Encoded ids
 * contain no =, so a jti never equals the id of a sub, or the hash of a long id.
 */
export function tokenKeyId(url: string, claims: JsonObject): string {
  const digest = (text: string) => hash('sha256', text, 'hex')
  const jti = jtiIn(claims)
  const id = jti ?? (typeof claims['sub'] === 'string' ? claims['sub'] : '')
  const encoded = encodeURIComponent(id.toWellFormed())
  const short = encoded.length > longestId ? `sha256=${digest(id)}` : encoded
  return `jwt:${digest(url).slice(0, 16)}:${jti === undefined ? 'sub=' : ''}${short}`
}
