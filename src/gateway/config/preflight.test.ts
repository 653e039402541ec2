// Checks of an audit log before it is opened; the check changes nothing.

import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { checkFiles } from './preflight.ts'

function open(t: TestContext) {
  const directory = mkdtempSync(join(tmpdir(), 'platform-check-'))
  t.after(() => rmSync(directory, { recursive: true }))
  const file = join(directory, 'gateway.yaml')
  const world = { env: {}, now: Date.now } as Parameters<typeof checkFiles>[1]
  return {
    at: (name: string) => join(directory, name),
    /** The problems of the audit log only. */
    async problems(log: string): Promise<string[]> {
      writeFileSync(
        file,
        JSON.stringify({ apiVersion: 'config.platform.sh/v1', kind: 'GatewayConfig', audit: { log } }),
      )
      const error = await checkFiles(file, world).then(() => '', String)
      assert.ok(error.includes('listen'), error)
      return error.split('\n').filter(line => line.includes('audit.log'))
    },
  }
}

test('an audit log that cannot be opened is reported with its setting and file', async t => {
  const { at, problems } = open(t)
  mkdirSync(at('directory'))
  writeFileSync(at('plain'), '')
  for (const [log, words] of [
    ['missing/audit.log', `cannot write ${at('missing/audit.log')}: the directory ${at('missing')} does not exist`],
    ['directory', `cannot write ${at('directory')}: it is a directory`],
    ['plain/audit.log', `cannot write ${at('plain/audit.log')}: the directory ${at('plain')} does not exist`],
  ] as const)
    assert.deepEqual(await problems(log), [`${at('gateway.yaml')}: audit.log: ${words}`])
})

test('the check neither creates nor changes an audit log', async t => {
  const { at, problems } = open(t)
  writeFileSync(at('old.log'), 'a line\n')
  for (const log of ['old.log', 'new.log', '-', 'off']) assert.deepEqual(await problems(log), [])
  assert.equal(readFileSync(at('old.log'), 'utf8'), 'a line\n')
  assert.equal(existsSync(at('new.log')), false)
})
