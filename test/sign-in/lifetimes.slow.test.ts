// The end of sessions, of started sign-ins and of codes, by a clock that jumps. Only the Date is simulated.

import assert from 'node:assert/strict'
import { hash, randomBytes } from 'node:crypto'
import { after, before, beforeEach, mock, suite, test } from 'node:test'
import type { Browser } from './browser.ts'
import { openPeople, type PeopleStage, secretOf, self } from './people-stage.ts'
import { signInAt } from './sign-in-at.ts'

const [minute, hour, day] = [60_000, 3_600_000, 24 * 3_600_000]
const random = () => randomBytes(32).toString('base64url')

suite('lifetimes of sign-in', () => {
  let stage: PeopleStage
  before(async () => {
    mock.timers.enable({ apis: ['Date'], now: Date.now() })
    stage = await openPeople({ inProcess: true, args: ['--limits-auth-total', '1000000'] })
  })
  after(async () => {
    mock.timers.reset()
    await stage.close()
  })
  beforeEach(() => {
    stage.provider.faults = {}
  })

  const forward = (milliseconds: number) => mock.timers.tick(milliseconds)
  const signIn = async () => {
    const browser = stage.browser()
    const page = await browser.signIn('ada')
    assert.equal(page.status, 200, page.text)
    return browser
  }
  const status = async (browser: Browser) => (await stage.ask('POST', self, {}, secretOf(browser))).status
  const reasonOf = (text: string) => /Code: <code>(\w+)<\/code>/.exec(text)?.[1]

  test('a session ends after 12 hours without use', async () => {
    const [used, unused] = [await signIn(), await signIn()]
    forward(11 * hour)
    assert.equal(await status(used), 201)
    forward(2 * hour)
    assert.equal(await status(used), 201)
    assert.equal(await status(unused), 401)
  })

  test('a session in use ends after 7 days', async () => {
    const browser = await signIn()
    for (let passed = 0; passed < 7 * day; passed += 6 * hour) {
      assert.equal(await status(browser), 201, `${passed / hour} h`)
      forward(6 * hour)
    }
    assert.equal(await status(browser), 401)
  })

  test('a session without a refresh token ends after an hour', async () => {
    stage.provider.faults = { response: { refresh_token: undefined } }
    const browser = await signIn()
    forward(55 * minute)
    assert.equal(await status(browser), 201)
    forward(6 * minute)
    assert.equal(await status(browser), 401)
  })

  test('a sign-in must reach the callback within 10 minutes', async () => {
    const browser = stage.browser()
    const callback = await signInAt(`${stage.server.http}/auth/login/corp`, 'ada', browser.jar)
    forward(10 * minute)
    const page = await browser.open(callback.href)
    assert.deepEqual([page.status, reasonOf(page.text)], [400, 'StateMismatch'])
    assert.equal(secretOf(browser), '')
  })

  const commandLine = () => {
    const verifier = random()
    const challenge = hash('sha256', verifier, 'base64url')
    return { verifier, path: `/auth/cli?${new URLSearchParams({ port: '40123', state: random(), challenge })}` }
  }

  test('a confirmation of the command line is valid for 2 minutes', async () => {
    const browser = await signIn()
    const { fields } = await browser.open(commandLine().path)
    forward(2 * minute)
    const answer = await browser.submit('/auth/cli', { ...fields, decision: 'approve' })
    assert.deepEqual([answer.status, reasonOf(answer.text)], [403, 'StaleConfirmation'])
  })

  test('a code of the command line is valid for 2 minutes', async () => {
    const browser = await signIn()
    const { path, verifier } = commandLine()
    const { fields } = await browser.open(path)
    const { headers } = await browser.submit('/auth/cli', { ...fields, decision: 'approve' })
    forward(2 * minute)
    const code = new URL(headers.location ?? '').searchParams.get('code')
    const { status: code400, text } = await browser.call('POST', '/auth/cli/token', { body: { code, verifier } })
    assert.deepEqual([code400, JSON.parse(text).error], [400, 'invalid_grant'])
  })

  test('a device code is valid for 10 minutes, for its page and for the device', async () => {
    const browser = await signIn()
    const { text } = await stage.browser().call('POST', '/auth/device/code', { body: {} })
    const { device_code: code, user_code: typed, expires_in: seconds } = JSON.parse(text)
    assert.equal(seconds, 600)
    forward(10 * minute)
    const page = await browser.open(`/auth/device?user_code=${typed}`)
    assert.deepEqual([page.status, reasonOf(page.text)], [404, 'UnknownDeviceCode'])
    const polled = await stage.browser().call('POST', '/auth/device/token', { body: { device_code: code } })
    assert.deepEqual([polled.status, JSON.parse(polled.text).error], [400, 'expired_token'])
  })
})
