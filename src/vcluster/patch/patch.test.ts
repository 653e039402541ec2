// Validation of patches: every rule, all problems at once, each with its path.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { checkPatches } from './patch.ts'

const told = (raw: unknown) =>
  checkPatches(raw).map(one => `${one.at.join('.')}${one.offset === undefined ? '' : `@${one.offset}`}: ${one.message}`)

test('the patches of SPEC §2.10 are accepted', () => {
  const secret = { apiVersion: 'v1', kind: 'Secret' }
  const patches = [
    { path: 'metadata.annotations[x.y/z]', expression: '"prefix-" + value', reverseExpression: 'value.slice(7)' },
    { path: 'subsets[*].addresses[*].ip', reverseExpression: 'value' },
    { path: '', expression: 'value' },
    { path: 'metadata.annotations["secret"]', reference: secret },
    { path: 'a', reference: { ...secret, namePath: 'name', namespacePath: 'namespace', kindPath: 'kind' } },
    { path: 'b', reference: { ...secret, labels: {} } },
    { path: 'c', labels: {} },
    { path: 'd', reference: { ...secret }, labels: {} },
    { path: 'metadata.name2', expression: 'null' },
  ]
  assert.deepEqual(told(patches), [])
  for (const none of [undefined, null, []]) assert.deepEqual(told(none), [])
})

test('every violated rule is reported with its path', () => {
  const reference = { apiVersion: 'v1', kind: 'Secret' }
  const cases: [unknown, RegExp][] = [
    ['text', /^: patches must be a list, not a string$/],
    [['text'], /^0: a patch must be a map, not a string$/],
    [[{ expression: '1' }], /^0: requires a path; "" is the whole object$/],
    [[{ path: 7, expression: '1' }], /^0.path: must be a string, not a number$/],
    [[{ path: 'a' }], /^0: requires an expression, a reverseExpression or a reference$/],
    [[{ path: 'a', expression: '1', reference }], /^0.reference: reference and expression cannot be combined/],
    [[{ path: 'a', reverseExpression: '1', labels: {} }], /^0.labels: labels and reverseExpression cannot be combined/],
    [[{ path: 'a[', expression: '1' }], /^0.path@1: the bracket is not closed/],
    [[{ path: 'a', expression: 'valeu' }], /^0.expression@0: unknown name "valeu"; did you mean value\?$/],
    [[{ path: 'a', reverseExpression: '1 +' }], /^0.reverseExpression@3: Unexpected token$/],
    [[{ path: 'a', expression: 42 }], /^0.expression: must be a string, not a number; quote it/],
    [[{ path: 'metadata.name', expression: '1' }], /^0.path: metadata.name cannot be patched/],
    [[{ path: 'metadata["namespace"]', expression: '1' }], /^0.path: metadata.namespace cannot be patched/],
    [[{ path: 'a', reference: { kind: 'Secret' } }], /^0.reference: requires apiVersion$/],
    [[{ path: 'a', reference: { apiVersion: 'v1' } }], /^0.reference: requires kind$/],
    [[{ path: 'a', reference: { ...reference, kind: '' } }], /^0.reference.kind: must be a non-empty string$/],
    [
      [{ path: 'a', reference: { ...reference, kindPath: 'kind' } }],
      /^0.reference: requires namePath, because kindPath is set/,
    ],
    [[{ path: 'a', reference: { ...reference, namePath: 'a[*]' } }], /^0.reference.namePath: must select one field/],
    [[{ path: 'a', reference: { ...reference, namePath: 'a.' } }], /^0.reference.namePath@2: a segment is empty/],
    [
      [{ path: 'a', reference: { ...reference, nmaePath: 'a' } }],
      /^0.reference.nmaePath: unknown key "nmaePath"; did you mean namePath\?$/,
    ],
    [[{ path: 'a', reference: 'Secret' }], /^0.reference: must be a map, not a string$/],
    [[{ path: 'a', labels: 'x' }], /^0.labels: must be a map, not a string; write \{\}$/],
    [[{ path: 'a', expresion: '1' }], /^0.expresion: unknown key "expresion"; did you mean expression\?/],
    [Array.from({ length: 1001 }, () => ({})), /^: too many patches: 1001, at most 1000$/],
  ]
  for (const [raw, message] of cases) assert.match(told(raw)[0] ?? '', message)
})

test('a duplicate path is rejected in any notation', () => {
  const patches = ['a.b', 'a["b"]', " a['b'] ", 'a.*', 'a[*]', 'a.c'].map(path => ({ path, expression: 'value' }))
  assert.deepEqual(
    checkPatches(patches).map(one => one.at),
    [
      [1, 'path'],
      [2, 'path'],
      [4, 'path'],
    ],
  )
  assert.match(told(patches)[0] ?? '', /a\.b is already patched by entry 0: put both into one expression/)
})

test('all problems of all patches are reported at once', () => {
  const patches = [
    { path: 'a[', expression: 'x + y', extra: 1 },
    { path: 'b' },
    { path: 'metadata.name', reference: {} },
  ]
  assert.equal(told(patches).length, 8, told(patches).join('\n'))
})

test('any value can be validated (1000 cases)', () => {
  const patch = fc.record(
    { path: fc.anything(), expression: fc.anything(), reference: fc.anything(), labels: fc.anything() },
    { requiredKeys: [] },
  )
  fc.assert(
    fc.property(fc.array(fc.oneof(patch, fc.anything())), raw => {
      for (const { message } of checkPatches(raw)) assert.ok(message)
    }),
    { numRuns: 1000 },
  )
})
