// DirectClusterEndpointToken: a short-lived token for a connected cluster, signed for the caller and never stored (SPEC §2.5, D31, D32).

import type { Scope } from '../api/caller.ts'
import { defineKind, type KindOf } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'
import { closed, integer, longText, type Static, struct, time } from '../api/schema.ts'
import { checkScope } from './scope-validation.ts'
import { scope } from './shared-schema.ts'

const spec = struct(
  'Desired properties of the token.',
  { ttl: integer('Lifetime of the token in seconds. Defaults to 3600.', { minimum: 0 }), scope },
  [],
  closed,
)
const status = struct('The token.', {
  token: longText('The issued token, a signed JWT.'),
  expirationTimestamp: time('Expiry.'),
})

type Token = Resource<Static<typeof spec>, Static<typeof status>>

/** The maximum lifetime of any token in seconds, whatever the configuration (D31). Revocations must outlive it. */
export const longestTokenTTL = 86_400

export const DirectClusterEndpointToken: KindOf<Token> = defineKind({
  kind: 'DirectClusterEndpointToken',
  plural: 'directclusterendpointtokens',
  singular: 'directclusterendpointtoken',
  namespaced: false,
  description:
    'DirectClusterEndpointToken lets a client skip the management API and connect directly to a connected cluster.',
  spec,
  status,
  verbs: ['create'],
  stored: false,
  hasIdentity: true,
  grants: () => [{ type: 'credential', field: 'spec.scope' }],
  validate: next => checkScope(next.spec?.scope as Scope),
  sample: { apiVersion: 'management.platform.sh/v1', kind: 'DirectClusterEndpointToken', spec: { ttl: 600 } },
})
