// Tests of small functions behind the pages: filter, order, scope in words, who-can lines, the place in YAML.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pathAt } from '../editor/schema-help.ts'
import { scopeSentences } from '../text/scope.ts'
import { filterRows, parseFilter, sortRows } from './filter.ts'
import { factsOf } from './who.ts'

test('a filter has words for the browser and labels for the server', () => {
  assert.deepEqual(parseFilter('  Web env=prod tier!=x'), { words: ['web'], labelSelector: 'env=prod,tier!=x' })
  assert.deepEqual(parseFilter(''), { words: [], labelSelector: '' })
})

test('a filter searches the shown columns, not the age as the server wrote it', () => {
  const made = { id: '/a', name: 'a', namespace: '', uid: '', version: '1', created: '', labels: {}, isDeleting: false }
  const rows = [{ ...made, cells: { Name: 'a', Owner: 'user-7', Age: '115s' } }]
  assert.deepEqual(filterRows(rows, ['user-7']), rows)
  assert.deepEqual(filterRows(rows, ['115']), [])
})

test('a scope is one sentence per entry', () => {
  assert.deepEqual(
    scopeSentences({
      projects: [{ project: 'shop', readOnly: true }, { project: '*' }],
      secrets: [{ namespace: 'default', name: 'db' }],
      roles: [{ role: 'metrics-reader' }],
      clusters: [{ cluster: 'dev' }],
    }),
    [
      'Reads project shop.',
      'Reads and changes all projects.',
      'Reads the global secret default/db.',
      'Uses cluster dev.',
      'Reads metrics.',
    ],
  )
  assert.deepEqual(scopeSentences(undefined), [])
})

test('a line of who-can has a subject and a reason; groups of teams are teams', () => {
  const lines = ['group platform:team:web by spec.access[0] of the object', 'user admin']
  assert.deepEqual(factsOf(lines), [
    ['team web', 'through spec.access[0] of the object'],
    ['user admin', ''],
  ])
})

test('a user whose name looks like a reason keeps the whole name', () => {
  const [who] = factsOf(['user ada by ClusterRoleBinding admins by ClusterRoleBinding readers'])
  assert.deepEqual(who, ['user ada by ClusterRoleBinding admins', 'through ClusterRoleBinding readers'])
})

test('a column with ages or namespaces is sorted by them, and the smallest age is the youngest', () => {
  const made = { uid: '', version: '1', labels: {}, isDeleting: false }
  const row = (name: string, namespace: string, created: string, used: string) => ({
    ...made,
    id: name,
    name,
    namespace,
    created,
    cells: { Used: used },
  })
  const rows = [
    row('a', 'z', '2026-01-01T00:00:00Z', '2d'),
    row('b', 'y', '2026-01-03T00:00:00Z', '77s'),
    row('c', 'x', '2026-01-02T00:00:00Z', '3h5m'),
  ]
  const order = (column: string) => sortRows(rows, column, false).map(({ name }) => name)
  assert.deepEqual([order('Used'), order('Namespace'), order('Age')].map(String), ['b,c,a', 'c,b,a', 'b,c,a'])
})

test('the place in YAML is the path of the keys above, through lists', () => {
  const lines = ['metadata:', '  name: a', 'spec:', '  access:', '    - verbs: [get]', '      te']
  assert.deepEqual(pathAt(lines, 5), ['spec', 'access'])
  assert.deepEqual(pathAt(lines, 1), ['metadata'])
  assert.deepEqual(pathAt(lines, 2), [])
})
