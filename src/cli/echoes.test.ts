// Error messages repeat short arguments only: a long one hides the message and may be a misplaced secret.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeIo } from '../../test/support/fake-io.ts'
import { commands } from './index.ts'
import { runCommand } from './run-command.ts'

const long = `canary-${'x'.repeat(300)}`
const cases: readonly (readonly [words: string, env?: { readonly [name: string]: string }])[] = [
  ['list LONG web'],
  ['list LONG'],
  ['get LONG web'],
  ['get team/web LONG'],
  ['get team/web LONG/web'],
  ['get team/LONG secret/web'],
  ['delete LONG web'],
  ['list teams LONG LONG'],
  ['list teams --LONG'],
  ['list teams --LONG=1'],
  ['list teams --no-headers=LONG'],
  ['list teams -o LONG'],
  ['list teams -n LONG'],
  ['list teams -l LONG=='],
  ['list teams -l LONG,,'],
  ['list teams --context LONG'],
  ['list teams', { PLATFORM_CONTEXT: long }],
  ['list teams --context LONG', { PLATFORM_ACCESS_KEY: '' }],
  ['list teams', { PLATFORM_NAMESPACE: long }],
  ['list secrets --unused LONG'],
  ['list secrets --project LONG'],
  ['create accesskey x --ttl LONG'],
  ['create accesskey x --scope-virtualcluster LONG'],
  ['create token --ttl LONG'],
  ['rotate accesskey x --overlap LONG'],
  ['diff secret LONG db@4'],
  ['rollback secret LONG'],
  ['history secret x LONG'],
  ['set secret db LONG=1 LONG=2'],
  ['set secret LONG=1'],
  ['set secret db LONG! LONG!'],
  ['get secret LONG x'],
  ['import secret LONG .env'],
  ['run -s db=LONG-1 -- true'],
  ['completion LONG'],
  ['LONG team'],
  ['team LONG'],
]

for (const [words, env = {}] of cases)
  test(`platform ${words}${Object.entries(env).map(([name, value]) => `, ${name}=${value && 'LONG'}`)} does not repeat a long argument`, async () => {
    const io = fakeIo({}, { env: { PLATFORM_SERVER: 'http://127.0.0.1:1', PLATFORM_ACCESS_KEY: 'plat_x', ...env } })
    const args = words.split(' ').map(word => word.replaceAll('LONG', long))
    assert.notEqual(await runCommand(commands, args, io), 0)
    assert.equal(io.said().includes('xxxxxxxxxxxxxxxx'), false, io.said())
    assert.notEqual(io.said(), '')
  })
