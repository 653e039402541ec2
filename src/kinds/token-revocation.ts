// TokenRevocation: tokens issued before a moment count no more (D33). Gateways follow it; the server writes it in the same commit as what causes it.

import { type FieldError, invalidValue, required } from '../api/errors.ts'
import { type Beside, defineKind, type Kind, type Tools } from '../api/kind.ts'
import { type JsonObject, type Resource, timestamp } from '../api/object.ts'
import { list, type Static, struct, text, time } from '../api/schema.ts'
import { longestTokenTTL } from './direct-cluster-endpoint-token.ts'

const spec = struct('Which tokens count no more.', {
  keyUID: text('Those of the access key with this uid.'),
  jti: text('The one with this id.'),
  users: list(text(''), 'Those of these users.'),
  groups: list(text(''), 'Those that carry one of these groups.'),
  reason: text('Why, in words.'),
  notBefore: time('Tokens issued until then are meant; default now.'),
  until: time('When no such token can be alive any more, and this object goes; never set earlier than that.'),
})

type Revocation = Resource<Static<typeof spec>>

export const TokenRevocation: Kind = defineKind({
  kind: 'TokenRevocation',
  plural: 'tokenrevocations',
  singular: 'tokenrevocation',
  namespaced: false,
  description: 'TokenRevocation makes direct-cluster tokens invalid before they expire.',
  spec,
  nameless: 'revoked-',
  // A gateway that lost its right to it would take an empty list for nobody being revoked.
  whole: true,
  verbs: ['create', 'get', 'list', 'watch'],
  columns: [
    { name: 'Reason', type: 'string', description: 'Why.', value: o => o.spec?.reason as string },
    { name: 'Not-Before', type: 'string', description: 'Issued until then.', value: o => o.spec?.notBefore as string },
    { name: 'Until', type: 'string', description: 'When it goes.', priority: 1, value: o => o.spec?.until as string },
  ],
  validate: next => check(next as Revocation),
  admit: async (next, old, tools) => ({
    object: old ? next : { ...next, spec: { ...next.spec, ...times(tools, next.spec as Times) } },
  }),
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

/**
 * A token that was made at the last moment is the last one that may be concerned. It counts for the longest life that any
 * setting allows: the setting may have been lowered since it was made.
 */
function times(tools: Tools, { notBefore = timestamp(tools.now()), until }: Times = {}) {
  const least = Date.parse(notBefore) + (longestTokenTTL + slack) * 1000
  return { notBefore, until: timestamp(Math.max(least, until === undefined ? 0 : Date.parse(until))) }
}

type Times = { readonly notBefore?: string | undefined; readonly until?: string | undefined }

/** Seconds: the leeway that gateways grant a token after its end, and clocks that differ. */
const slack = 300

/** What is stored beside a write that takes tokens their ground. */
export function revocation(which: Pick<JsonObject, string>, reason: string, tools: Tools): readonly Beside[] {
  return [{ kind: TokenRevocation, object: { spec: { ...times(tools), ...which, reason } } }]
}
