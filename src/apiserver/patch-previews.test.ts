// The quota of previews: one user cannot occupy the threads.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Caller } from '../api/caller.ts'
import type { ApiError } from '../api/errors.ts'
import { openPatchPreviews } from './patch-previews.ts'

const previews = openPatchPreviews(1000, Date.now)
after(() => previews.close())

const callerOf = (username: string): Caller => ({ identity: 'User', username, groups: [] })
const object = {
  apiVersion: 'v1',
  kind: 'Endpoints',
  metadata: { name: 'web', namespace: 'default', labels: { app: 'web' } },
}
const endless = {
  object,
  patches: [{ path: 'metadata.labels.app', expression: '(() => { for (;;) {} })()' }],
}

test('one at a time of one user, a second gets a 429 with a time to retry; another user is served', async () => {
  const slow = previews.run(callerOf('ada'), endless)
  await assert.rejects(previews.run(callerOf('ada'), { object }), (error: ApiError) => {
    assert.deepEqual([error.status.code, error.status.details?.retryAfterSeconds], [429, 1])
    return true
  })
  await previews.run(callerOf('bob'), { object })
  await slow
  await previews.run(callerOf('ada'), { object })
})
