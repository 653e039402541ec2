// Number and lifetime of the threads in the pool.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openPool } from './sandbox-pool.ts'
import type { SandboxThread } from './sandbox-thread.ts'

const job = { source: 'value', input: '{}', softMs: 50, hardMs: 250 }

/** Threads that answer at once, and are counted. */
function counted() {
  const count = { opened: 0, closed: 0 }
  const open = async (): Promise<SandboxThread> => {
    count.opened++
    return {
      perform: async jobs => jobs.map(() => ({ output: '' })),
      close: async () => void count.closed++,
    }
  }
  return { count, open }
}

test('start opens all threads, and later jobs open no more', async () => {
  const { count, open } = counted()
  const pool = openPool(2, open)
  await pool.start()
  assert.deepEqual(count, { opened: 2, closed: 0 })
  await Promise.all(Array.from({ length: 20 }, () => pool.perform(job)))
  assert.equal(count.opened, 2)
  await pool.close()
  assert.equal(count.closed, 2)
})

test('a thread that opens after close is closed, and a thread that fails to open is reported', async () => {
  const { count, open } = counted()
  const slow = Promise.withResolvers<void>()
  const pool = openPool(1, async () => {
    await slow.promise
    return open()
  })
  const starting = pool.start()
  await pool.close()
  slow.resolve()
  await starting
  assert.deepEqual(count, { opened: 1, closed: 1 })
  const none = openPool(2, () => Promise.reject(new Error('no threads here')))
  await assert.rejects(none.start(), /no threads here/)
})
