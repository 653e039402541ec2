// TokenRevocation: revokes tokens that were issued before a time (D33).

import { type FieldError, invalidValue, required } from '../api/errors.ts'
import { defineKind, type KindOf } from '../api/kind.ts'
import { type Resource, timestamp } from '../api/object.ts'
import { flag, list, longText, mapOf, type Static, struct, text, time } from '../api/schema.ts'
import { longestTokenTTL } from './direct-cluster-endpoint-token.ts'

const spec = struct('The revoked tokens.', {
  keyUID: text('Revokes the tokens of the access key with this uid.'),
  jti: text('Revokes the token with this id.'),
  users: list(text(''), 'Revokes the tokens of these users.'),
  groups: list(text(''), 'Revokes the tokens with one of these groups.'),
  carrying: text('Limits the fields above to tokens that also have this group.'),
  since: mapOf(
    time(''),
    'Times before notBefore for single names in users and groups. Their tokens are revoked until that time only.',
  ),
  tokensOnly: flag('When true, revokes tokens only. Requests and streams that use the access key itself continue.'),
  reason: longText('Human-readable reason.'),
  notBefore: time('Revokes tokens issued until this time. Defaults to now.'),
  until: time(
    'Time when all revoked tokens have expired and the server deletes this object. The server replaces an earlier time.',
  ),
})

export type RevocationSpec = Static<typeof spec>
type Revocation = Resource<RevocationSpec, unknown>

export const TokenRevocation: KindOf<Revocation> = defineKind({
  kind: 'TokenRevocation',
  plural: 'tokenrevocations',
  singular: 'tokenrevocation',
  namespaced: false,
  description: 'TokenRevocation makes direct-cluster tokens invalid before they expire.',
  spec,
  generateNamePrefix: 'revoked-',
  // Without permission, an empty list would make a gateway accept revoked tokens.
  allOrNothing: true,
  verbs: ['create', 'get', 'list', 'watch'],
  columns: [
    { name: 'Reason', type: 'string', description: 'Reason of the revocation.', value: o => o.spec?.reason as string },
    {
      name: 'Not-Before',
      type: 'string',
      description: 'Revokes tokens issued until this time.',
      value: o => o.spec?.notBefore as string,
    },
    {
      name: 'Until',
      type: 'string',
      description: 'Time when the server deletes it.',
      priority: 1,
      value: o => o.spec?.until as string,
    },
  ],
  validate: (next, old) => [...check(next as Revocation), ...(old ? [] : checkName(next.metadata.name))],
  sample: {
    apiVersion: 'management.platform.sh/v1',
    kind: 'TokenRevocation',
    metadata: { name: 'revoked-a' },
    spec: { jti: '8f14e45f-ceea-467f-a8b5-5c2b9f0a6d1e', reason: 'lost laptop' },
  },
})

function check({ spec = {} }: Revocation): FieldError[] {
  const { keyUID, jti, users = [], groups = [], notBefore, until } = spec
  if (!keyUID && !jti && users.length === 0 && groups.length === 0)
    return [required('spec', 'at least one of keyUID, jti, users and groups is required')]
  if (notBefore && until && Date.parse(until) <= Date.parse(notBefore))
    return [invalidValue('spec.until', until, 'must be after notBefore')]
  return []
}

/** Reserved for the server, which merges later revocations into objects with these names. */
const serverName = /^revoked-(key|owner|team|issuer)-/

const checkName = (name = ''): FieldError[] =>
  serverName.test(name)
    ? [
        invalidValue(
          'metadata.name',
          name,
          'names with the prefix revoked-key-, revoked-owner-, revoked-team- or revoked-issuer- are reserved for the server',
        ),
      ]
    : []

/** Seconds. Covers the leeway of gateways and clock skew. */
const slack = 300

/**
 * Milliseconds after which every older token has expired. Uses the longest lifetime that any configuration allows,
 * because the configuration may have changed since the token was issued.
 */
export const tokenLifetime = (longestTokenTTL + slack) * 1000

export type Times = { readonly notBefore: string; readonly until: string }

/** A token issued at the last moment is the last one that can be affected. */
export function timesOf(now: number, given: { readonly [T in keyof Times]?: string | undefined } = {}): Times {
  const { notBefore = timestamp(now), until } = given
  const least = Date.parse(notBefore) + tokenLifetime
  return { notBefore, until: timestamp(Math.max(least, until === undefined ? 0 : Date.parse(until))) }
}
