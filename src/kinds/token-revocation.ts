// TokenRevocation: revokes tokens issued before a given time (D33). Gateways watch it. merged-revocation.ts makes those that the server writes.

import { type FieldError, invalidValue, required } from '../api/errors.ts'
import { defineKind, type KindOf } from '../api/kind.ts'
import { type Resource, timestamp } from '../api/object.ts'
import { flag, list, mapOf, type Static, struct, text, time } from '../api/schema.ts'
import { longestTokenTTL } from './direct-cluster-endpoint-token.ts'

const spec = struct('Which tokens count no more.', {
  keyUID: text('Those of the access key with this uid.'),
  jti: text('The one with this id.'),
  users: list(text(''), 'Those of these users.'),
  groups: list(text(''), 'Those that carry one of these groups.'),
  carrying: text('Limits all of the above to tokens that also carry this group.'),
  since: mapOf(
    time(''),
    'For single names in users and groups: a time before notBefore until which their tokens are revoked.',
  ),
  tokensOnly: flag('When true, it revokes tokens only: requests and streams that use the access key itself continue.'),
  reason: text('Why, in words.'),
  notBefore: time('Tokens issued until then are meant; default now.'),
  until: time('When no such token can be alive any more, and this object goes; never set earlier than that.'),
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
  // A gateway without permission would otherwise read an empty list as "nothing is revoked".
  allOrNothing: true,
  verbs: ['create', 'get', 'list', 'watch'],
  columns: [
    { name: 'Reason', type: 'string', description: 'Why.', value: o => o.spec?.reason as string },
    { name: 'Not-Before', type: 'string', description: 'Issued until then.', value: o => o.spec?.notBefore as string },
    { name: 'Until', type: 'string', description: 'When it goes.', priority: 1, value: o => o.spec?.until as string },
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
    return [required('spec', 'one of keyUID, jti, users and groups says which tokens are meant')]
  if (notBefore && until && Date.parse(until) <= Date.parse(notBefore))
    return [invalidValue('spec.until', until, 'must be after notBefore')]
  return []
}

/** Only the server uses these names: it merges later revocations into such an object. */
const serverName = /^revoked-(key|owner|team)-/

const checkName = (name = ''): FieldError[] =>
  serverName.test(name)
    ? [
        invalidValue(
          'metadata.name',
          name,
          'names beginning with revoked-key-, revoked-owner- or revoked-team- are given by the server alone',
        ),
      ]
    : []

/** Seconds. Covers the leeway of gateways after the end of a token, and clock skew. */
const slack = 300

/**
 * Milliseconds after which all earlier tokens have expired. It uses the longest lifetime that any setting allows, because
 * the setting may have been lowered since the token was made.
 */
export const tokenLifetime = (longestTokenTTL + slack) * 1000

export type Times = { readonly notBefore: string; readonly until: string }

/** The revocation lives until the last token it applies to has expired. */
export function timesOf(now: number, given: { readonly [T in keyof Times]?: string | undefined } = {}): Times {
  const { notBefore = timestamp(now), until } = given
  const least = Date.parse(notBefore) + tokenLifetime
  return { notBefore, until: timestamp(Math.max(least, until === undefined ? 0 : Date.parse(until))) }
}
