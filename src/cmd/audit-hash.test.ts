// `platform audit hash` prints the hash of a value and never takes the value as an argument.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { saltFileIn } from '../serving/audit-log.ts'
import { hashWith, saltIn } from '../serving/audit-redact.ts'
import { auditHash } from './audit-hash.ts'

async function run(directory: string, text: string): Promise<string[]> {
  const lines: string[] = []
  const input = Readable.from(text === '' ? [] : [Buffer.from(text)])
  await auditHash(['--data', directory], {}, { input, print: line => void lines.push(line) })
  return lines
}

test('prints the hash of a value and of its base64, with and without a final line break', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'audit-hash-'))
  const hash = hashWith(saltIn(saltFileIn(directory), true))
  const hashes = (lines: readonly string[]) => lines.map(line => line.split(' ')[0])
  assert.deepEqual(hashes(await run(directory, 'hunter2')), [hash('hunter2'), hash('aHVudGVyMg==')])
  assert.deepEqual(hashes(await run(directory, 'hunter2\n')), [
    hash('hunter2'),
    hash('aHVudGVyMg=='),
    hash('hunter2\n'),
    hash('aHVudGVyMgo='),
  ])
  await assert.rejects(run(directory, ''), /nothing on stdin/)
  rmSync(directory, { recursive: true })
})

test('fails without the salt of the server and does not create one', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'audit-hash-'))
  const said = /cannot read the salt of the server: cannot read \S+audit\.salt: there is no such file; set --data/
  await assert.rejects(run(directory, 'a'), said)
  await assert.rejects(run(directory, 'a'), said)
  rmSync(directory, { recursive: true })
})

test('rejects a value as an argument', async () => {
  await assert.rejects(
    auditHash(['hunter2'], {}, { input: Readable.from([]), print: () => {} }),
    (error: Error) => /unexpected|positional/i.test(error.message) && !error.message.includes('hunter2'),
  )
})
