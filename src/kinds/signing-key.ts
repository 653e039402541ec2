// SigningKey: signs direct-cluster tokens (D31); internal (D2). Administrators create the next one with a SigningKeyRotation.

import { defineKind } from '../api/kind.ts'
import { struct, text, time } from '../api/schema.ts'

export const SigningKey = defineKind({
  kind: 'SigningKey',
  plural: 'signingkeys',
  singular: 'signingkey',
  namespaced: false,
  description:
    'SigningKey signs direct-cluster tokens. The ones before the newest stay for as long as their tokens live.',
  spec: struct('The key.', {
    signsFrom: time('When it begins to sign. Published from its creation on.'),
    publicKey: struct('The public half, as in the key set of the issuer.', {
      kty: text('Always EC.'),
      crv: text('Always P-256.'),
      x: text('First coordinate.'),
      y: text('Second coordinate.'),
    }),
    privateKey: text('The private half; sealed, and never shown.'),
  }),
  hidden: ['spec.privateKey'],
  sealed: ['spec.privateKey'],
  generateNamePrefix: 'signing-',
  verbs: ['create', 'delete', 'get', 'list', 'watch'],
  served: false,
  sample: { apiVersion: 'management.platform.sh/v1', kind: 'SigningKey', metadata: { name: 'signing-a' } },
})

export const SigningKeyRotation = defineKind({
  kind: 'SigningKeyRotation',
  plural: 'signingkeyrotations',
  singular: 'signingkeyrotation',
  namespaced: false,
  description:
    'SigningKeyRotation makes a new key sign direct-cluster tokens from now on. Tokens that are out stay valid.',
  status: struct('What signs now.', { key: text('Id of the new key, as in the key set of the issuer.') }),
  verbs: ['create'],
  stored: false,
  sample: { apiVersion: 'management.platform.sh/v1', kind: 'SigningKeyRotation' },
})
