// A watch whose server goes away says so once, goes on, and ends where the server is not the one it was.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeIo } from '../../test/support/fake-io.ts'
import { ApiError } from '../api/errors.ts'
import { Team } from '../kinds/team.ts'
import { type Source, watchObjects } from './get-watch.ts'
import { untrusted } from './trust.ts'

test('-w tells that the connection is lost, once for each reason, and ends where trust is broken', async () => {
  const errors = [
    new ApiError(503, 'ServiceUnavailable', 'nobody listens there'),
    new ApiError(503, 'ServiceUnavailable', 'nobody listens there'),
    untrusted('cannot trust https://x'),
  ]
  const from = {
    list: async () => ({ items: [], resourceVersion: '1' }),
    watch: async () => Promise.reject(errors.shift() ?? new Error('asked once more')),
  } as unknown as Source
  const io = fakeIo()
  await assert.rejects(
    watchObjects(io, from, { kind: Team, names: [], options: {}, selection: {} }),
    /cannot trust https:\/\/x/,
  )
  assert.equal(io.said(), 'platform: warning: changes are not seen at the moment: nobody listens there; tried again\n')
})

test('-w says nothing of history that is too old, and tells again of a server that was back meanwhile', async () => {
  const away = () => new ApiError(503, 'ServiceUnavailable', 'nobody listens there')
  const busy = () => new ApiError(503, 'ServiceUnavailable', 'not ready')
  const steps = [away(), busy(), away(), new ApiError(410, 'Expired', 'too old'), away(), untrusted('cannot trust it')]
  const from = {
    list: async () => ({ items: [], resourceVersion: '1' }),
    watch: async () => Promise.reject(steps.shift()),
  } as unknown as Source
  const io = fakeIo()
  await assert.rejects(watchObjects(io, from, { kind: Team, names: [], options: {}, selection: {} }), /cannot trust it/)
  const why = (text: string) => `platform: warning: changes are not seen at the moment: ${text}; tried again\n`
  assert.equal(io.said(), [why('nobody listens there'), why('not ready'), why('nobody listens there')].join(''))
})
