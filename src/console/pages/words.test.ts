// Tests of small functions behind the pages: filter, scope in words, who-can lines, the place in YAML.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pathAt } from '../editor/schema-help.ts'
import { scopeSentences } from '../text/scope.ts'
import { filterRows, parseFilter } from './filter.ts'
import { whoOf } from './who.ts'

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
  assert.deepEqual(whoOf('group platform:team:web by spec.access[0] of the object'), {
    who: 'team web',
    by: 'spec.access[0] of the object',
    team: 'web',
  })
  assert.deepEqual(whoOf('user admin'), { who: 'user admin', by: '' })
})

test('the place in YAML is the path of the keys above, through lists', () => {
  const lines = ['metadata:', '  name: a', 'spec:', '  access:', '    - verbs: [get]', '      te']
  assert.deepEqual(pathAt(lines, 5), ['spec', 'access'])
  assert.deepEqual(pathAt(lines, 1), ['metadata'])
  assert.deepEqual(pathAt(lines, 2), [])
})
