// AccessKeyActivity: gateways report when access keys, or their tokens, were last used (D19, D33).
// Never stored.

import { type FieldError, invalidValue, required } from '../api/errors.ts'
import { defineKind, type KindOf } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'
import { integer, list, type Static, struct, text, time } from '../api/schema.ts'

const spec = struct('The report.', {
  keys: list(
    struct('A used key.', { uid: text('uid of the key.'), lastActivity: time('Last use of the key.') }, [
      'uid',
      'lastActivity',
    ]),
    'The used keys. Deleted keys are ignored.',
    { maxItems: 1000 },
  ),
})
const status = struct('Result of the report.', { recorded: integer('Number of keys that exist.') })

type Activity = Resource<Static<typeof spec>, Static<typeof status>>

const maxUses = 1000

export const AccessKeyActivity: KindOf<Activity> = defineKind({
  kind: 'AccessKeyActivity',
  plural: 'accesskeyactivities',
  singular: 'accesskeyactivity',
  namespaced: false,
  description:
    'AccessKeyActivity reports when access keys were last used outside of the management API. It updates their lastActivity.',
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
  if (keys.length === 0) return [required('spec.keys', 'at least one key is required')]
  return keys.length > maxUses ? [invalidValue('spec.keys', keys.length, `must have at most ${maxUses} items`)] : []
}
