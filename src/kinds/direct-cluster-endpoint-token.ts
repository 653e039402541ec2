// DirectClusterEndpointToken: a short-lived token for a connected cluster (SPEC §2.5, D31, D32). Signed for the caller, never stored.

import type { Scope } from '../api/caller.ts'
import { shortDuration } from '../api/duration.ts'
import { invalid, invalidValue } from '../api/errors.ts'
import { defineKind, type KindOf, type Tools } from '../api/kind.ts'
import { type Resource, timestamp } from '../api/object.ts'
import { closed, integer, type Static, struct, text, time } from '../api/schema.ts'
import { checkScope } from './scope-validation.ts'
import { scope } from './shared-schema.ts'

const spec = struct(
  'What the token is to be.',
  { ttl: integer('Seconds the token lives; absent or 0: an hour.', { minimum: 0 }), scope },
  [],
  closed,
)
const status = struct('The token.', {
  token: text('The issued token, a signed JWT.'),
  expirationTimestamp: time('When it ends.'),
})

type Token = Resource<Static<typeof spec>, Static<typeof status>>

const usual = 3600
/** No setting allows a token to live longer, in seconds (D31). What has to outlive every token counts with this. */
export const longestTokenTTL = 86_400

export const DirectClusterEndpointToken: KindOf<Token> = defineKind({
  kind: 'DirectClusterEndpointToken',
  plural: 'directclusterendpointtokens',
  singular: 'directclusterendpointtoken',
  namespaced: false,
  description:
    'DirectClusterEndpointToken lets a client skip the central service and connect directly to a connected cluster.',
  spec,
  status,
  verbs: ['create'],
  stored: false,
  grants: () => [{ type: 'credential', field: 'spec.scope' }],
  validate: next => checkScope(next.spec?.scope as Scope),
  answer,
  sample: { apiVersion: 'management.platform.sh/v1', kind: 'DirectClusterEndpointToken', spec: { ttl: 600 } },
})

async function answer(next: Token, tools: Tools): Promise<Token> {
  const ttl = next.spec?.ttl || usual
  if (ttl > tools.maxTokenTTL)
    throw invalid(DirectClusterEndpointToken, '', [
      invalidValue(
        'spec.ttl',
        ttl,
        `must be at most ${tools.maxTokenTTL} seconds (${shortDuration(tools.maxTokenTTL)})`,
      ),
    ])
  const asked = next.spec?.scope as Scope | undefined
  // A token without a scope of its own has that of its key (D32).
  const wanted = asked && Object.keys(asked).length ? asked : tools.caller.scope
  if (tools.dryRun) return next
  const { token, expires } = await tools.sign({ ttl, scope: wanted && eachOnce(wanted) })
  tools.warn(
    "the token is in status.token of this answer and is never shown again: kubectl create -o jsonpath='{.status.token}' prints it",
  )
  return { ...next, status: { token, expirationTimestamp: timestamp(expires) } }
}

/** Whoever names a cluster twice means one, and a token for exactly one is what a stock cluster takes (D31). */
const eachOnce = (scope: Scope): Scope =>
  Object.fromEntries(Object.entries(scope).map(([field, value]) => [field, Array.isArray(value) ? once(value) : value]))

const once = (entries: readonly unknown[]) => [...new Map(entries.map(one => [JSON.stringify(one), one])).values()]
