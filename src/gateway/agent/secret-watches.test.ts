// The watches of Secrets end with the agent, whatever fails.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Resources } from '../../api/resources.ts'
import { openSecretWatches } from './secret-watches.ts'

test('an agent that stops does not repeat a failed request', async () => {
  const stopping = new AbortController()
  let reads = 0
  const watches = openSecretWatches({
    resources: {} as Resources,
    record: {
      // As an aborted request and an aborted wait, it fails without a turn of the event loop. Repeated, it would block everything else.
      read: () => {
        reads++
        return reads > 100 ? new Promise(() => {}) : Promise.reject(new Error('aborted'))
      },
      write: () => Promise.reject(new Error('aborted')),
    },
    uid: 'uid',
    changed: () => {},
    moved: () => {},
    failed: () => stopping.abort(),
    wait: () => Promise.resolve(),
    signal: stopping.signal,
  })
  watches.watch(new Set(['shop']), false)
  await new Promise(resolve => setImmediate(resolve))
  watches.stop()
  assert.equal(reads, 1)
})
