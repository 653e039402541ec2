// A watch whose server goes away says so once, goes on, and ends where the server is not the one it was.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeIo } from '../../test/support/fake-io.ts'
import { ApiError } from '../api/errors.ts'
import { ProjectSecret } from '../kinds/project-secret.ts'
import { SharedSecret } from '../kinds/shared-secret.ts'
import { Team } from '../kinds/team.ts'
import { type Source, watchObjects } from './get-watch.ts'
import { untrusted } from './login/trust.ts'

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
    watchObjects(io, from, { kinds: [Team], names: [], options: {}, selection: {} }),
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
  await assert.rejects(
    watchObjects(io, from, { kinds: [Team], names: [], options: {}, selection: {} }),
    /cannot trust it/,
  )
  const why = (text: string) => `platform: warning: changes are not seen at the moment: ${text}; tried again\n`
  assert.equal(io.said(), [why('nobody listens there'), why('not ready'), why('nobody listens there')].join(''))
})

test('of several kinds those that were not asked for by name may be refused: that is told, and the others are followed', async () => {
  const object = { apiVersion: '', kind: '', metadata: { name: 'db', namespace: 'default' } }
  const over = new ApiError(403, 'Forbidden', 'not any more')
  const sourceWithout = (refused: string) =>
    ({
      list: async ({ kind }: { kind: string }) => {
        if (kind === refused) throw new ApiError(403, 'Forbidden', 'they are not yours')
        return { items: [{ object }], resourceVersion: '1' }
      },
      watch: async () => Promise.reject(over),
    }) as unknown as Source
  const watched = {
    kinds: [SharedSecret, ProjectSecret],
    names: [],
    options: { output: 'name' },
    selection: {},
  } as const
  const io = fakeIo()
  await assert.rejects(watchObjects(io, sourceWithout('ProjectSecret'), watched), over)
  assert.equal(io.printed(), 'sharedsecret/db\n')
  assert.equal(io.said(), 'platform: projectsecrets are left out: they are not yours\n')
  await assert.rejects(watchObjects(fakeIo(), sourceWithout('SharedSecret'), watched), /they are not yours/)
})
