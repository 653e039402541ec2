// SigningKey: what direct-cluster tokens are signed with (D31). Creating one is rotating: it signs from then on, and the ones before stay for as long as their tokens live.

import { type FieldError, fieldForbidden } from '../api/errors.ts'
import { defineKind, type Kind } from '../api/kind.ts'
import { type Resource, timestamp } from '../api/object.ts'
import { type Static, struct, text, time } from '../api/schema.ts'

const spec = struct('The key.', {
  signsFrom: time('When it begins to sign; default now. Published from its creation on.'),
  publicKey: struct('The public half, as in the key set of the issuer. Set by the server.', {
    kty: text('Always EC.'),
    crv: text('Always P-256.'),
    x: text('First coordinate.'),
    y: text('Second coordinate.'),
  }),
  privateKey: text('The private half. Set by the server; sealed, and never shown.'),
})

type Key = Resource<Static<typeof spec>>

export const SigningKey: Kind = defineKind({
  kind: 'SigningKey',
  plural: 'signingkeys',
  singular: 'signingkey',
  namespaced: false,
  description:
    'SigningKey signs direct-cluster tokens. Create one to rotate; delete one to make all it signed invalid.',
  spec,
  hidden: ['spec.privateKey'],
  sealed: ['spec.privateKey'],
  nameless: 'signing-',
  verbs: ['create', 'delete', 'get', 'list', 'watch'],
  columns: [
    {
      name: 'Signs-From',
      type: 'string',
      description: 'When it begins to sign.',
      value: o => o.spec?.signsFrom as string,
    },
  ],
  validate: (next, old) => (old ? [] : checkGiven(next as Key)),
  admit: async (next, old, tools) => {
    if (old) return { object: next }
    const { signsFrom = timestamp(tools.now()) } = next.spec ?? {}
    return { object: { ...next, spec: { signsFrom, ...tools.keyPair() } } }
  },
  sample: { apiVersion: 'management.platform.sh/v1', kind: 'SigningKey', metadata: { name: 'signing-a' } },
})

/** A key that somebody brought along would be known to them. */
function checkGiven({ spec = {} }: Key): FieldError[] {
  return (['publicKey', 'privateKey'] as const)
    .filter(field => spec[field] !== undefined)
    .map(field => fieldForbidden(`spec.${field}`, 'keys are made by the server'))
}
