// `npm run demo:sso`: a new user signs in, lands in the team, and loses access when the provider removes the group.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { test } from 'node:test'
import { eventually } from '../support/wire.ts'
import { openBrowser } from './browser.ts'
import { signInAt } from './sign-in-at.ts'

test('the demo of single sign-on', async t => {
  const demo = spawn(process.execPath, [join(import.meta.dirname, '../../demo/sso.ts')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  t.after(() => demo.kill('SIGKILL'))
  let printed = ''
  demo.stdout.setEncoding('utf8').on('data', text => {
    printed += text
  })
  await eventually('the demo is ready', async () => printed.includes('quit'))
  const origin = /browser: +(http:\S+)\/auth\/login/.exec(printed)?.[1] ?? ''
  const browser = openBrowser(origin)
  const callback = await signInAt(`${origin}/auth/login/demo`, 'ada', browser.jar)
  await browser.open(callback.href)
  const page = await browser.open('/auth/session')
  assert.match(page.text, /<dt>Teams<\/dt><dd>web<\/dd>/)
  const team = async () =>
    (await browser.call('GET', '/kubernetes/management/apis/management.platform.sh/v1/teams/web')).status
  assert.equal(await team(), 200)
  demo.stdin.write('groups ada ops\n')
  await eventually('ada leaves the team', async () => (await team()) === 403)
  demo.stdin.write('quit\n')
  const [code] = await once(demo, 'exit')
  assert.equal(code, 0)
})
