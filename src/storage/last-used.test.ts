// The side table of last activity (D19), with both engines of openStorage.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { openStorage } from './index.ts'
import { openActivity } from './last-used.ts'

test('a touch is visible immediately and written once per interval', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const written: unknown[] = []
  const activity = openActivity({ save: async times => void written.push(times) })
  for (let time = 1; time <= 100; time++) activity.touch('a', time)
  activity.touch('a', 50)
  activity.touch('b', 7)
  assert.equal(activity.last('a'), 100)
  assert.equal(written.length, 0, "off the caller's path")
  t.mock.timers.tick(60_000)
  await activity.flush()
  assert.equal(written.length, 1)
  assert.deepEqual(written, [
    [
      ['a', 100],
      ['b', 7],
    ],
  ])
  await activity.flush()
  assert.equal(written.length, 1, 'nothing new')
  await activity.close()
})

test('the timer writes, and failed writes are repeated the next time', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const tries: unknown[] = []
  let full = true
  const save = async (times: unknown) => {
    tries.push(times)
    if (full) throw new Error('the disk is full')
  }
  const activity = openActivity({ save })
  activity.touch('a', 1)
  t.mock.timers.tick(60_000)
  await assert.rejects(activity.flush(), /full/)
  full = false
  activity.touch('b', 2)
  activity.forget('b')
  await activity.flush()
  assert.deepEqual(tries.at(-1), [
    ['a', 1],
    ['b', undefined],
  ])
  await activity.close()
})

test('activity and objects survive a restart with the sqlite engine, and nothing does with memory', async t => {
  const directory = mkdtempSync(join(tmpdir(), 'platform-activity-'))
  t.after(() => rmSync(directory, { recursive: true, force: true }))
  for (const engine of ['sqlite', 'memory'] as const) {
    const first = await openStorage({ engine, directory, now: () => 0 })
    first.activity.touch('a', 5)
    first.activity.touch('b', 6)
    await first.activity.flush()
    first.activity.forget('b')
    await first.close()
    const second = await openStorage({ engine, directory, now: () => 0 })
    assert.equal(second.activity.last('a'), engine === 'sqlite' ? 5 : undefined)
    assert.equal(second.activity.last('b'), undefined)
    assert.equal(second.store.revision, 1, 'activity has no revision')
    await second.close()
  }
})
