// Scopes: words that requests bring along are looked up as words, whatever JavaScript has under that name.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allows } from './scope.ts'

test('a group or a role named like a member of every object opens nothing (D25)', () => {
  for (const word of ['constructor', 'toString', '__proto__', 'hasOwnProperty']) {
    const act = { verb: 'create', group: word, resource: 'length', namespace: '' }
    assert.equal(allows({ roles: [{ role: 'platform-cli' }] }, { target: 'Management', act }), undefined, word)
    assert.equal(allows({ roles: [{ role: word }] }, { target: 'Management', act }), undefined, word)
  }
})
