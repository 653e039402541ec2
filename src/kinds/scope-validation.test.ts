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

test('accepts gateway names and wildcards, and empty values of optional fields', () => {
  const scope: Scope = {
    clusters: [{ cluster: 'p' }, { cluster: 'eu-1.prod' }, { cluster: '*' }],
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

test('accepts a stored entry that can never match, until it changes', () => {
  const old: Scope = {
    spaces: [{ space: 'a' }],
    roles: [{ role: 'workspace' }],
    rules: [{ virtualClusters: [{ name: 'dev' }] }],
  }
  assert.deepEqual(checkScope(old, old), [])
  assert.equal(checkScope(old).length, 3)
  assert.equal(checkScope({ ...old, roles: [{ role: 'workspace', projects: ['web'] }] }, old).length, 1)
})

test('accepts a stored role that is confined to nothing, until it changes', () => {
  const old: Scope = { roles: [{ role: 'agent', projects: ['shop'] }] }
  assert.deepEqual(checkScope(old, old), [])
  assert.deepEqual(
    checkScope({ roles: [...(old.roles ?? []), { role: 'agent', virtualClusters: ['dev'] }] }, old).map(
      ({ field }) => field,
    ),
    ['spec.scope.roles[1].virtualClusters'],
  )
  assert.deepEqual(
    checkScope({ roles: [{ role: 'platform-cli', projects: ['shop'], virtualClusters: ['dev'] }, { role: 'agent' }] }),
    [],
  )
})

test('wildcards must not overlap, in any order', () => {
  const errors = (...resources: string[]) =>
    checkScope({ rules: [{ resources: [{ group: 'g', resources }] }] }).map(({ message }) => message.split('"')[1])
  assert.deepEqual(errors('*', 'a'), ['a'])
  assert.deepEqual(errors('a/x', '*'), ['a/x'])
  assert.deepEqual(errors('a/*', 'a/x'), ['a/x'])
  assert.deepEqual(errors('*/x', 'a/x'), ['a/x'])
  assert.deepEqual(errors('*/*', 'a/x'), ['a/x'])
  assert.deepEqual(errors('*/x', 'a/*'), ['*/x'])
  assert.deepEqual(errors('a/*', 'a/*'), ['a/*', 'a/*'])
  for (const fine of [
    ['a', 'a'],
    ['a', 'a/*'],
    ['a/*', 'b/*'],
    ['*/x', '*/y'],
    ['*/*', 'a'],
    ['*/x', 'a/y', 'a'],
  ])
    assert.deepEqual(errors(...fine), [], fine.join())
})

test('stops at the maximum number of errors', () => {
  const clusters = Array.from({ length: 10_000 }, (_, at) => ({ cluster: `A${at}` }))
  assert.ok(checkScope({ clusters }).length < 200)
  const resources = ['*', ...clusters.map(({ cluster }) => cluster)]
  assert.ok(checkScope({ rules: [{ resources: [{ group: 'g', resources }] }] }).length < 200)
})
