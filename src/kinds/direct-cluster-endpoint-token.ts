// DirectClusterEndpointToken: a short-lived token for a connected cluster (SPEC §2.5). Served once tokens are issued.

import { defineKind } from '../api/kind.ts'
import { integer, struct, text } from '../api/schema.ts'
import { scope } from './shapes.ts'

export const DirectClusterEndpointToken = defineKind({
  kind: 'DirectClusterEndpointToken',
  plural: 'directclusterendpointtokens',
  singular: 'directclusterendpointtoken',
  namespaced: false,
  description:
    'DirectClusterEndpointToken lets a client skip the central service and connect directly to a connected cluster.',
  spec: struct('What the token is to be.', {
    ttl: integer('Seconds the token lives; absent or 0: an hour.', { minimum: 0 }),
    scope,
  }),
  status: struct('The token.', { token: text('The issued token, a signed JWT.') }),
  verbs: ['create'],
  stored: false,
  served: false,
  sample: { apiVersion: 'management.platform.sh/v1', kind: 'DirectClusterEndpointToken', spec: { ttl: 600 } },
})
