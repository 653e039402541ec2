// Every kind has the admission that it needs.
// Nothing else checks that a declared subresource has a handler.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds } from '../kinds/index.ts'
import { type AdmissionDependencies, admissionsFor } from './admissions.ts'

// Admissions call their dependencies per request, so these tests need none.
const admissions = admissionsFor({} as AdmissionDependencies)

for (const kind of kinds) {
  const { answer, collect, list, watch, admit, companions, subresources = {} } = admissions.get(kind) ?? {}

  test(`${kind.kind}: every declared subresource has a handler, and every handler is declared`, () => {
    assert.deepEqual(Object.keys(subresources), Object.keys(kind.subresources))
  })

  test(`${kind.kind}: ${kind.stored ? 'is stored and read from the store' : 'responds to the verbs that it serves'}`, () => {
    assert.equal(answer !== undefined, !kind.stored && kind.verbs.includes('create'))
    const lists = [collect, list].filter(Boolean).length
    assert.equal(lists, !kind.stored && kind.verbs.includes('list') ? 1 : 0)
    assert.equal(watch !== undefined, !kind.stored && kind.verbs.includes('watch'))
    if (!kind.stored) assert.deepEqual([admit, companions], [undefined, undefined])
  })
}

test('every admission belongs to a kind of the server', () => {
  for (const kind of admissions.keys()) assert.ok(kinds.includes(kind), kind.kind)
})
