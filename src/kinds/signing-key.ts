// SigningKey: an internal kind with a key that signs direct-cluster tokens (D2, D31).
// Administrators create a new one with a SigningKeyRotation.

import { defineKind } from '../api/kind.ts'
import { longText, struct, text, time } from '../api/schema.ts'

export const SigningKey = defineKind({
  kind: 'SigningKey',
  plural: 'signingkeys',
  singular: 'signingkey',
  namespaced: false,
  description: 'SigningKey signs direct-cluster tokens. Older keys stay until their tokens have expired.',
  spec: struct('The key.', {
    signsFrom: time('Start of its use. It is published as soon as it is created.'),
    publicKey: struct('The public key, as in the JWKS of the issuer.', {
      kty: text('Always EC.'),
      crv: text('Always P-256.'),
      x: text('First coordinate.'),
      y: text('Second coordinate.'),
    }),
    privateKey: longText('The private key, encrypted. Never shown.'),
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
  description: 'SigningKeyRotation creates a new key for direct-cluster tokens. Existing tokens stay valid.',
  status: struct('The current key.', { key: text('Id of the new key, as in the JWKS of the issuer.') }),
  verbs: ['create'],
  stored: false,
  sample: { apiVersion: 'management.platform.sh/v1', kind: 'SigningKeyRotation' },
})
