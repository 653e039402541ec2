// `npm run demo:sso`: a new user signs in, lands in the team, and loses access when the provider removes the group.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { eventually } from '../support/wire.ts'
import { openBrowser } from './browser.ts'
import { signInAt } from './sign-in-at.ts'

async function startDemo(t: TestContext) {
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
  const fileOf = (pattern: RegExp) => pattern.exec(printed)?.[1] ?? ''
  return { demo, origin, token: fileOf(/--token-file (\S+)/), adminKey: fileOf(/- < (\S+)/), printed: () => printed }
}

test('the demo of single sign-on', async t => {
  const { demo, origin } = await startDemo(t)
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

test('the demo has tokens of a pipeline and the key of the administrator, and deletes them at the end', async t => {
  const { demo, origin, token, adminKey, printed } = await startDemo(t)
  const exchange = async () => {
    const type = 'urn:ietf:params:oauth:token-type:jwt'
    const grant = 'urn:ietf:params:oauth:grant-type:token-exchange'
    const subject = readFileSync(token, 'utf8')
    const body = new URLSearchParams({ grant_type: grant, subject_token: subject, subject_token_type: type })
    return (await fetch(`${origin}/auth/token`, { method: 'POST', body })).status
  }
  assert.equal(await exchange(), 200)
  assert.equal(await exchange(), 400, 'a token can sign in once')
  demo.stdin.write('token other\n')
  await eventually('a token of another branch', async () => printed().includes('a token of the branch other'))
  assert.equal(await exchange(), 400)
  const headers = { authorization: `Bearer ${readFileSync(adminKey, 'utf8').trim()}` }
  const teams = await fetch(`${origin}/kubernetes/management/apis/management.platform.sh/v1/teams`, { headers })
  assert.equal(teams.status, 200)
  demo.kill('SIGTERM')
  await once(demo, 'exit')
  assert.ok(!existsSync(token) && !existsSync(adminKey))
})
