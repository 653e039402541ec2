// Commit subjects have at most 72 characters, so that logs and mails show them whole.

import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { exec } from './support/exec.ts'

const root = join(import.meta.dirname, '..')
const longest = 72
/** Older commits stay as they are. */
const since = '2026-11-16T14:10:00Z'

test(`new commits have a subject of at most ${longest} characters`, async () => {
  // A source archive has no history to check.
  if (!existsSync(join(root, '.git'))) return
  const { code, stdout, stderr } = await exec('git', ['log', `--since=${since}`, '--format=%h %s'], { cwd: root })
  assert.equal(code, 0, stderr)
  const long = stdout.split('\n').filter(line => line.slice(line.indexOf(' ') + 1).length > longest)
  assert.deepEqual(long, [])
})
