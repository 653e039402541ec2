// A scope with an impossible name is invalid, unless the stored scope has the name already (SPEC §2.8).

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Scope } from '../api/caller.ts'
import { checkScope } from './scope-validation.ts'

const right = /: must be a name of lower-case letters, digits, - and \., such as prod, or \* for all$/

test('reports impossible names in every field of a scope', () => {
  const scope: Scope = {
    clusters: [{ cluster: 'prod' }, { cluster: 'PROD!' }, { cluster: 'prod/x' }, { cluster: 'prod-*' }],
    projects: [{ project: 'Shop' }],
    spaces: [{ project: 'web', space: 'a b' }],
    virtualClusters: [{ project: '-web', virtualCluster: `v${'x'.repeat(253)}` }],
    roles: [{ role: 'platform-cli', projects: ['web', '../web'] }],
    rules: [{ cluster: 'é' }],
  }
  const errors = checkScope(scope)
  assert.deepEqual(
    errors.map(({ field }) => field),
    [
      'spec.scope.projects[0].project',
      'spec.scope.spaces[0].space',
      'spec.scope.virtualClusters[0].project',
      'spec.scope.virtualClusters[0].virtualCluster',
      'spec.scope.clusters[1].cluster',
      'spec.scope.clusters[2].cluster',
      'spec.scope.clusters[3].cluster',
      'spec.scope.roles[0].projects[1]',
      'spec.scope.rules[0].cluster',
    ],
  )
  for (const { message } of errors) assert.match(message, right)
})

test('accepts gateway names, wildcards and empty values', () => {
  const scope: Scope = {
    clusters: [{ cluster: 'p' }, { cluster: 'eu-1.prod' }, { cluster: '*' }, { cluster: '' }, {}],
    virtualClusters: [{ project: '*', virtualCluster: `v${'x'.repeat(252)}` }],
    rules: [{ cluster: '*' }, { cluster: '' }, {}],
  }
  assert.deepEqual(checkScope(scope), [])
  assert.deepEqual(checkScope(undefined), [])
})

test('accepts stored impossible names, rejects new ones', () => {
  const old: Scope = { clusters: [{ cluster: 'PROD!' }] }
  assert.deepEqual(checkScope(old, old), [])
  const next: Scope = { clusters: [{ cluster: 'PROD!' }, { cluster: 'DEV' }], projects: [{ project: 'PROD!' }] }
  assert.deepEqual(
    checkScope(next, old).map(({ field }) => field),
    ['spec.scope.projects[0].project', 'spec.scope.clusters[1].cluster'],
  )
})

test('stops at the maximum number of errors', () => {
  const clusters = Array.from({ length: 10_000 }, (_, at) => ({ cluster: `A${at}` }))
  assert.ok(checkScope({ clusters }).length < 200)
})
