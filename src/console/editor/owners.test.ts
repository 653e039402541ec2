// Tests of field owners in the editor.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonObject, Resource } from '../../api/object.ts'
import { editable } from './difference.ts'
import { linesOf } from './owner-lines.ts'
import { affectedManagers, fieldName, managersOf } from './owners.ts'
import { toYaml } from './yaml.ts'

const cluster: Resource = {
  apiVersion: 'management.platform.sh/v1',
  kind: 'Cluster',
  metadata: {
    name: 'prod',
    labels: { 'example.org/tier': 'core' },
    managedFields: [
      {
        manager: 'flux',
        operation: 'Apply',
        time: '2026-01-31T08:00:00Z',
        fieldsV1: {
          'f:metadata': { 'f:labels': { 'f:example.org/tier': {} } },
          'f:spec': {
            'f:displayName': {},
            'f:projects': { 'k:{"project":"shop"}': { '.': {}, 'f:project': {}, 'f:namespaces': { 'v:"b"': {} } } },
          },
        },
      },
      { manager: 'console', operation: 'Update', fieldsV1: { 'f:spec': { 'f:description': {} } } },
      {
        manager: 'agent',
        operation: 'Update',
        subresource: 'status',
        fieldsV1: { 'f:status': { 'f:lastContact': {} } },
      },
      { manager: 'broken', operation: 'Update', fieldsV1: { 'f:spec': { 'f:projects': { 'k:{': {}, x: {} } } } },
    ],
  },
  spec: {
    displayName: 'Production',
    description: 'mine',
    projects: [
      { project: 'other', namespaces: ['x'] },
      { project: 'shop', namespaces: ['a', 'b'] },
    ],
  },
  status: { lastContact: '2026-01-31T08:00:00Z' },
}
const managers = managersOf(cluster)
const from = editable(cluster as unknown as JsonObject)
const affected = (spec: JsonObject) =>
  affectedManagers(managers, { from, to: { ...from, spec }, self: 'console' }).map(({ name, fields }) => [
    name,
    fields.map(fieldName),
  ])
const spec = cluster.spec as JsonObject

test('managers of the shown fields are listed with their fields; those of the status are not', () => {
  assert.deepEqual(
    managers.map(({ name, isApplied, fields }) => [name, isApplied, fields.map(fieldName)]),
    [
      [
        'flux',
        true,
        [
          'metadata.labels["example.org/tier"]',
          'spec.displayName',
          'spec.projects[project="shop"].project',
          'spec.projects[project="shop"].namespaces[="b"]',
        ],
      ],
      ['console', false, ['spec.description']],
    ],
  )
})

test('an edit affects another manager only if it changes or removes one of its fields', () => {
  assert.deepEqual(affected(spec), [])
  assert.deepEqual(affected({ ...spec, description: 'changed' }), [], 'its own field')
  assert.deepEqual(affected({ ...spec, displayName: 'Changed' }), [['flux', ['spec.displayName']]])
  const { displayName: _, ...without } = spec
  assert.deepEqual(affected(without), [['flux', ['spec.displayName']]])
})

test('items of a list are compared by their key or value, not by their place', () => {
  const projects = [
    { project: 'shop', namespaces: ['new', 'b'] },
    { project: 'another', namespaces: [] },
  ]
  assert.deepEqual(affected({ ...spec, projects }), [])
  assert.deepEqual(affected({ ...spec, projects: [{ project: 'shop', namespaces: ['a'] }] }), [
    ['flux', ['spec.projects[project="shop"].namespaces[="b"]']],
  ])
})

test('each field of another manager has a line of the text, also after edits; a text with mistakes has none', () => {
  const typed = `# a comment\n${toYaml(from)}`
  const lines = typed.split('\n')
  const shown = [...linesOf(managers, typed, 'console')].map(([line, names]) => [lines[line - 1]?.trim(), names])
  assert.deepEqual(shown, [
    ['example.org/tier: core', ['flux']],
    ['displayName: Production', ['flux']],
    ['- project: shop', ['flux']],
    ['- b', ['flux']],
  ])
  assert.equal(linesOf(managers, 'spec: [', 'console').size, 0)
})
