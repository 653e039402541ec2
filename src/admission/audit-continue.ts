// Continue tokens of searches in the audit log: encrypted, and valid only for the same caller and query, at every replica.

import type { AuditCursor, AuditPosition } from '../api/audit-query.ts'
import { expired } from '../api/errors.ts'

/** Encrypts texts that clients keep, with the master key. */
export type TokenSealing = {
  readonly sealToken: (purpose: string, text: string) => string
  /** Undefined: not sealed by this installation for this purpose. */
  readonly openToken: (purpose: string, sealed: string) => string | undefined
}

/** `scope`: the caller and the query. */
export type ContinueTokens = {
  readonly write: (cursor: AuditCursor, scope: string) => string
  readonly read: (token: string, scope: string) => AuditCursor
}

/** A position of one replica is shorter. The length of a token must not reveal the positions. */
const positionBytes = 96
/** Enough for 32 replicas. */
const maxTokenLength = 8192

/** A replica without a position could not be read. */
type Stored = readonly (readonly [id: string] | readonly [id: string, file: string, at: number])[]

export function openContinueTokens({ sealToken, openToken }: TokenSealing): ContinueTokens {
  return {
    write(cursor, scope) {
      const stored: Stored = [...cursor].map(([id, place]) => (place === 'missing' ? [id] : [id, place.file, place.at]))
      const size = positionBytes * 2 ** Math.ceil(Math.log2(stored.length))
      return sealToken(purposeOf(scope), JSON.stringify(stored).padEnd(size))
    },
    read(token, scope) {
      const text = token.length > maxTokenLength ? undefined : openToken(purposeOf(scope), token)
      if (text === undefined)
        throw expired('The provided continue parameter is from another search or another user; search again')
      return new Map((JSON.parse(text) as Stored).map(([id, file, at]) => [id, placeOf(file, at)]))
    },
  }
}

const purposeOf = (scope: string) => `audit search ${scope}`

const placeOf = (file: string | undefined, at: number | undefined): AuditPosition | 'missing' =>
  file === undefined || at === undefined ? 'missing' : { file, at }
