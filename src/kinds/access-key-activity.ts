// AccessKeyActivity: gateways report with it when keys and their tokens were last used (D19, D33). It is not stored.

import { type FieldError, invalidValue, required } from '../api/errors.ts'
import { defineKind, type KindOf } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'
import { integer, list, type Static, struct, text, time } from '../api/schema.ts'

const spec = struct('Which keys, and when.', {
  keys: list(
    struct('A key that was used.', { uid: text('Its uid.'), lastActivity: time('When.') }, ['uid', 'lastActivity']),
    'The keys; one that is not there any more is passed over.',
    { maxItems: 1000 },
  ),
})
const status = struct('What came of it.', { recorded: integer('How many of the keys are there.') })

type Activity = Resource<Static<typeof spec>, Static<typeof status>>

const most = 1000

export const AccessKeyActivity: KindOf<Activity> = defineKind({
  kind: 'AccessKeyActivity',
  plural: 'accesskeyactivities',
  singular: 'accesskeyactivity',
  namespaced: false,
  description: 'AccessKeyActivity tells when access keys were last used elsewhere, so that lastActivity shows it.',
  spec,
  status,
  verbs: ['create'],
  stored: false,
  validate: check,
  sample: {
    apiVersion: 'management.platform.sh/v1',
    kind: 'AccessKeyActivity',
    spec: { keys: [{ uid: '8f14e45f-ceea-467f-a8b5-5c2b9f0a6d1e', lastActivity: '2026-01-02T03:04:05Z' }] },
  },
})

function check({ spec = {} }: Activity): FieldError[] {
  const { keys = [] } = spec
  if (keys.length === 0) return [required('spec.keys', 'say which keys were used')]
  return keys.length > most ? [invalidValue('spec.keys', keys.length, `tell of at most ${most} keys at once`)] : []
}
