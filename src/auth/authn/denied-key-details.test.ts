// The details about a key in a denial, which only its holder receives.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ownKeyWith } from './denied-key-details.ts'

const tell = ownKeyWith({ ends: () => undefined, now: () => 0 })
const target = { group: 'authentication.k8s.io', resource: 'selfsubjectreviews', namespace: '' }
const holder = (resources: string[]) => ({
  username: 'bob',
  groups: [],
  key: 'rightless',
  scope: { rules: [{ verbs: ['create'], resources: [{ group: target.group, resources }] }] },
})

test('a denial because of missing permissions has no details about the key', () => {
  assert.equal(tell(holder(['selfsubjectreviews']), { verb: 'create', target }), undefined)
  assert.equal(tell(holder(['tokenreviews']), { verb: 'create', target })?.[0]?.reason, 'KeyScope')
})
