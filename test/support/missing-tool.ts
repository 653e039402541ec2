// What a test says where something it needs is not on this machine: a skip with the reason, in CI a failure.

import assert from 'node:assert/strict'
import { test } from 'node:test'

export function notRun(missing: string): void {
  const text = `not run: missing ${missing}`
  test(text, t => {
    assert.ok(!process.env['CI'], text)
    t.skip(text)
  })
}
