// The scope of a key in one line, as `list accesskeys` and `whoami` print it.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { scopeText } from './key-summary.ts'

test('prints the fields of an entry in the order of the flags, whatever order is stored', () => {
  const scope = {
    projects: [{ readOnly: true, project: 'shop' }],
    spaces: [{ space: 'dev', project: 'shop' }],
    virtualClusters: [{ virtualCluster: 'vc', project: 'shop' }],
    clusters: [{ cluster: 'edge' }],
    secrets: [
      { name: 'reg', namespace: 'default' },
      { name: 'app', project: 'shop' },
    ],
  }
  assert.equal(
    scopeText(scope),
    'projects: shop:ro; spaces: shop/dev; virtualClusters: shop/vc; clusters: edge; secrets: default/reg, project shop/app',
  )
})

test('prints a role with the projects that it is confined to', () => {
  const roles = [{ projects: ['shop', 'web'], role: 'platform-cli' }, { role: 'agent' }]
  assert.equal(scopeText({ roles }), 'roles: platform-cli (projects shop web), agent')
  assert.equal(
    scopeText({ roles: [{ virtualClusters: ['dev'], projects: ['*'], role: 'platform-cli' }] }),
    'roles: platform-cli (projects *, virtualClusters dev)',
  )
})

test('prints a rule as JSON, because no flag describes it', () => {
  assert.equal(scopeText({ rules: [{ verbs: ['get'], cluster: 'edge' }] }), 'rules: {"verbs":["get"],"cluster":"edge"}')
})
