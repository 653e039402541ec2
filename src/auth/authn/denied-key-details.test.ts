// What a refusal tells the holder of a key about that key.

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

test('a key that is refused for want of rights, and not by its scope, is told nothing', () => {
  assert.equal(tell(holder(['selfsubjectreviews']), { verb: 'create', target }), undefined)
  assert.equal(tell(holder(['tokenreviews']), { verb: 'create', target })?.[0]?.reason, 'KeyScope')
})
