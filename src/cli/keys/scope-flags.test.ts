// The scope that flags of `platform create accesskey` describe (D23).

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { scopeText } from './key-summary.ts'
import { scopeOf } from './scope-flags.ts'

const none = {
  'scope-project': [],
  'scope-space': [],
  'scope-virtualcluster': [],
  'scope-cluster': [],
  'scope-role': [],
  secret: [],
}

test('secrets of the namespace and of projects, and read-only projects', () => {
  const scope = scopeOf({ ...none, 'scope-project': ['shop:ro', 'web'], secret: ['db', 'shop/app'] })('stage')
  assert.deepEqual(scope, {
    projects: [{ project: 'shop', readOnly: true }, { project: 'web' }],
    secrets: [
      { namespace: 'stage', name: 'db' },
      { project: 'shop', name: 'app' },
    ],
  })
  assert.equal(scopeText(scope), 'projects: shop:ro, web; secrets: stage/db, project shop/app')
})

test('without flags there is no scope', () => {
  assert.equal(scopeOf(none)('default'), undefined)
})
