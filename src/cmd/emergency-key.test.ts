// Which sockets `platform admin emergency-key` trusts.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { socketProblem } from './emergency-key.ts'

test('the socket must belong to the user and have mode 0600', () => {
  const stats = { uid: 7, mode: 0o140600, isSocket: () => true }
  assert.equal(socketProblem(stats, 7), undefined)
  assert.match(socketProblem(stats, 0) ?? '', /belongs to the user with id 7/)
  assert.match(socketProblem({ ...stats, mode: 0o140666 }, 7) ?? '', /mode 0666/)
  assert.match(socketProblem({ ...stats, isSocket: () => false }, 7) ?? '', /not a socket/)
})
