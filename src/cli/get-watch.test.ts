// `get -w` warns once per outage, reconnects, and stops if the server can no longer be trusted.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeIo } from '../../test/support/fake-io.ts'
import { ApiError } from '../api/errors.ts'
import { ProjectSecret } from '../kinds/project-secret.ts'
import { SharedSecret } from '../kinds/shared-secret.ts'
import { Team } from '../kinds/team.ts'
import { type Source, watchObjects } from './get-watch.ts'
import { untrusted } from './login/trust.ts'

test('-w warns once for each cause of a lost connection and stops on an untrusted server', async () => {
  const errors = [
    new ApiError(503, 'ServiceUnavailable', 'connection refused'),
    new ApiError(503, 'ServiceUnavailable', 'connection refused'),
    untrusted('cannot trust https://x'),
  ]
  const from = {
    list: async () => ({ items: [], resourceVersion: '1' }),
    watch: async () => Promise.reject(errors.shift() ?? new Error('unexpected request')),
  } as unknown as Source
  const io = fakeIo()
  await assert.rejects(
    watchObjects(io, from, { kinds: [Team], names: [], options: {}, selection: {} }),
    /cannot trust https:\/\/x/,
  )
  assert.equal(io.said(), 'platform: warning: cannot watch, retrying: connection refused\n')
})

test('-w is silent about expired history and warns again after a reconnect', async () => {
  const unreachable = () => new ApiError(503, 'ServiceUnavailable', 'connection refused')
  const busy = () => new ApiError(503, 'ServiceUnavailable', 'not ready')
  const steps = [
    unreachable(),
    busy(),
    unreachable(),
    new ApiError(410, 'Expired', 'too old'),
    unreachable(),
    untrusted('cannot trust it'),
  ]
  const from = {
    list: async () => ({ items: [], resourceVersion: '1' }),
    watch: async () => Promise.reject(steps.shift()),
  } as unknown as Source
  const io = fakeIo()
  await assert.rejects(
    watchObjects(io, from, { kinds: [Team], names: [], options: {}, selection: {} }),
    /cannot trust it/,
  )
  const why = (text: string) => `platform: warning: cannot watch, retrying: ${text}\n`
  assert.equal(io.said(), [why('connection refused'), why('not ready'), why('connection refused')].join(''))
})

test('-w skips a forbidden kind with a note if the user did not name it, and watches the others', async () => {
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
  assert.equal(io.said(), 'platform: projectsecrets skipped: they are not yours\n')
  await assert.rejects(watchObjects(fakeIo(), sourceWithout('SharedSecret'), watched), /they are not yours/)
})
