// Names in log messages: a short name looks like a word, and is not in a bundle.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { logTail } from './log-tail.ts'
import { openRedaction } from './redact.ts'

const shownOf = (line: object) => logTail(Buffer.from(JSON.stringify(line)), openRedaction(false, new Uint8Array(8)))

test('names in quotes, and names that are also fields, are left out of messages', () => {
  const quoted = shownOf({ level: 50, msg: 'checking the roles of team "web": it will be tried again' })
  assert.match(quoted, /checking the roles of team \* it will be tried again/)
  assert.doesNotMatch(quoted, /web/)
  const alarm = shownOf({
    ...{ level: 50, kind: 'SharedSecret', namespace: 'prod', name: 'db', path: 'spec.data' },
    msg: 'ALARM: spec.data of SharedSecret prod/db cannot be decrypted; db, (db) and team db; restore it',
  })
  assert.match(alarm, /cannot be decrypted; \* \* and team \* restore it/)
  assert.doesNotMatch(alarm, /\b(prod|db)\b/)
})

test('messages of controllers put names in quotes', () => {
  const folder = new URL('../../controllers/', import.meta.url)
  for (const file of readdirSync(folder).filter(name => name.endsWith('.ts')))
    assert.doesNotMatch(
      readFileSync(new URL(file, folder), 'utf8'),
      /failed\(`[^`]*[^"]\$\{(name|username|entry)\}/,
      file,
    )
})
