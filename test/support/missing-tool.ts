// Handles a missing tool: skips the test with the reason, and fails it in CI.

import assert from 'node:assert/strict'
import { test } from 'node:test'

export function notRun(missing: string): void {
  const text = `not run: missing ${missing}`
  test(text, t => {
    assert.ok(!process.env['CI'], text)
    t.skip(text)
  })
}
