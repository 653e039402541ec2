// Sign-in with a real browser. With PLATFORM_SHOTS=DIRECTORY, saves a picture of every page, light, dark and narrow.

import assert from 'node:assert/strict'
import { hash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, before, suite, type TestContext, test } from 'node:test'
import { type Browser, chromium, type Page } from 'playwright-core'
import { findChromium } from '../support/chromium.ts'
import { notRun } from '../support/missing-tool.ts'
import { openPeople, type PeopleStage } from './people-stage.ts'

const found = await findChromium()
const shots = process.env['PLATFORM_SHOTS']
const random = () => randomBytes(32).toString('base64url')

if (!found) notRun('Chromium')
else
  suite('sign-in with Chromium', () => {
    let stage: PeopleStage
    let browser: Browser
    let page: Page
    const problems: string[] = []
    before(async () => {
      stage = await openPeople()
      browser = await chromium.launch({
        executablePath: found.executablePath,
        env: { ...process.env, ...found.env } as { [name: string]: string },
        args: ['--no-sandbox'],
      })
      page = await browser.newPage({ viewport: { width: 1280, height: 800 } })
      // Includes violations of the content security policy.
      page.on('console', message => {
        if (message.type() === 'error') problems.push(message.text())
      })
    })
    after(async () => {
      await browser?.close()
      await stage?.close()
    })

    const shoot = async (name: string) => {
      if (!shots) return
      for (const scheme of ['light', 'dark'] as const)
        for (const width of [1280, 390]) {
          await page.emulateMedia({ colorScheme: scheme })
          await page.setViewportSize({ width, height: 800 })
          await page.screenshot({ path: join(shots, `${name}-${scheme}-${width}.png`) })
        }
      await page.setViewportSize({ width: 1280, height: 800 })
    }
    const signInAtProvider = async (account: string) => {
      await page.fill('input[name=account]', account)
      await page.click('button[type=submit], button')
    }
    /** The provider still has its session: no test confirms the end of it. */
    const signInToConsole = async () => {
      await page.goto(`${stage.server.http}/console/`)
      await page.getByRole('button', { name: 'Sign in with corp' }).click()
      await page.getByText('Hello, corp:ada').waitFor()
    }
    const heading = () => page.textContent('h1')

    test('a person signs in with the provider, on plain HTTP on loopback', async () => {
      await page.goto(`${stage.server.http}/auth/login`)
      await shoot('login')
      await page.click('text=Sign in with corp')
      await signInAtProvider('ada')
      await page.waitForURL('**/console/')
      await page.getByText('Hello, corp:ada').waitFor()
      await page.goto(`${stage.server.http}/auth/session`)
      assert.equal(await heading(), 'You are signed in')
      await shoot('session')
      const [cookie] = (await page.context().cookies()).filter(({ name }) =>
        /^__Host-platform-[0-9a-f]{12}$/.test(name),
      )
      assert.deepEqual([cookie?.httpOnly, cookie?.secure, cookie?.sameSite], [true, true, 'Lax'])
    })

    test('a script of a page of this server may use the session, one of another site may not', async t => {
      const path = '/kubernetes/management/apis/management.platform.sh/v1/teams'
      const inPage = (url: string) => page.evaluate(async at => (await fetch(at)).status, url)
      // The pages themselves allow no requests at all.
      await page.goto(`${stage.server.http}/healthz`)
      assert.equal(await inPage(path), 200)
      const port = await listen(t, (_, response) => void response.end('<h1>other</h1>'))
      await page.goto(`http://127.0.0.1:${port}/`)
      const status = await page.evaluate(
        at =>
          fetch(at, { credentials: 'include', mode: 'no-cors' }).then(
            response => response.type,
            () => 'failed',
          ),
        `${stage.server.http}${path}`,
      )
      assert.ok(['opaque', 'failed'].includes(status))
      const audit = await readFile(join(stage.server.directory, 'audit.log'), 'utf8')
      assert.match(audit, /the session cookie is accepted only from pages of this server/)
    })

    /** Opens the page of a command line that listens on a port. */
    async function commandLine(t: TestContext) {
      let received: URL | undefined
      const port = await listen(t, (request, response) => {
        if (request.url?.startsWith('/callback')) received = new URL(request.url, 'http://127.0.0.1')
        response.end('<h1>done</h1>')
      })
      const state = random()
      const challenge = hash('sha256', random(), 'base64url')
      const query = new URLSearchParams({ port: String(port), state, challenge, machine: 'ada@laptop' })
      await page.goto(`${stage.server.http}/auth/cli?${query}`)
      assert.equal(await heading(), 'Sign in the command line?')
      return { port, state, received: () => received }
    }

    test('the command line is confirmed, and gets a code on its port', async t => {
      const { port, state, received } = await commandLine(t)
      await shoot('command-line')
      await page.click('button:has-text("Sign in")')
      await page.waitForURL(`http://127.0.0.1:${port}/callback**`)
      assert.equal(received()?.searchParams.get('state'), state)
      assert.ok(received()?.searchParams.get('code'))
    })

    test('Cancel tells the command line', async t => {
      const { port, received } = await commandLine(t)
      await page.click('button:has-text("Cancel")')
      await page.waitForURL(`http://127.0.0.1:${port}/callback**`)
      assert.equal(received()?.searchParams.get('error'), 'access_denied')
      assert.equal(received()?.searchParams.get('code'), null)
    })

    test('a device is confirmed with the keyboard', async () => {
      const answer = await fetch(`${stage.server.http}/auth/device/code`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ machine: 'build-7' }),
      })
      const { user_code: code } = (await answer.json()) as { user_code: string }
      await page.goto(`${stage.server.http}/auth/device`)
      await shoot('device')
      await page.focus('#user_code')
      await page.keyboard.type(code.toLowerCase())
      await page.keyboard.press('Enter')
      await page.waitForSelector('text=build-7')
      await shoot('device-confirm')
      await page.focus('button[value=approve]')
      await page.keyboard.press('Enter')
      await page.waitForSelector('text=The machine is signed in')
    })

    test('an error is a page with advice', async () => {
      await page.goto(`${stage.server.http}/auth/callback/corp?state=x&code=y`)
      assert.equal(await heading(), 'The sign-in was not started here')
      await shoot('error')
      await page.click('text=Back to sign-in')
      assert.equal(await heading(), 'Sign in')
    })

    test('sign-out leads through the provider, and back', async () => {
      await page.goto(`${stage.server.http}/auth/session`)
      await page.click('button:has-text("Sign out") >> nth=0')
      await page.waitForURL(`${stage.provider.url}/**`)
      await page.goto(`${stage.server.http}/auth/session`)
      await page.waitForURL('**/auth/login')
    })

    test('sign-out in the console leads through the provider as well', async () => {
      await signInToConsole()
      await page.getByRole('button', { name: /^corp:ada/ }).click()
      await page.getByRole('menuitem', { name: 'Sign out', exact: true }).click()
      await page.waitForURL(`${stage.provider.url}/session/end?**`)
      await page.goto(`${stage.server.http}/auth/session`)
      await page.waitForURL('**/auth/login')
    })

    test('a sign-out leads to the provider although the page finds the end of its session first', async () => {
      await signInToConsole()
      await page.route(
        '**/auth/logout**',
        async route => {
          const response = await route.fetch()
          const again = page.waitForResponse('**/auth/session')
          // The page looks for its session when its window gets the focus.
          await page.evaluate(`window.dispatchEvent(new Event('visibilitychange'))`)
          assert.equal((await again).status(), 401)
          await page.evaluate(() => fetch('../auth/providers'))
          await route.fulfill({ response })
        },
        { times: 1 },
      )
      await page.getByRole('button', { name: /^corp:ada/ }).click()
      await page.getByRole('menuitem', { name: 'Sign out', exact: true }).click()
      await page.waitForURL(`${stage.provider.url}/session/end?**`)
    })

    test('a sign-out in the console that fails says why, and the session continues', async () => {
      await signInToConsole()
      const status = { message: 'not all sessions have ended; sign out again' }
      await page.route('**/auth/logout**', route => route.fulfill({ status: 503, json: status }), { times: 1 })
      await page.getByRole('button', { name: /^corp:ada/ }).click()
      await page.getByRole('menuitem', { name: 'Sign out everywhere' }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByText(status.message).waitFor()
      await dialog.getByRole('button', { name: 'Close' }).click()
      await page.getByText('Hello, corp:ada').waitFor()
    })

    test('no page violates its policy', () => {
      assert.deepEqual(
        problems.filter(text => /Content Security Policy|Refused/.test(text)),
        [],
      )
    })
  })

async function listen(t: TestContext, handle: RequestListener): Promise<number> {
  const server = createServer(handle).listen(0, '127.0.0.1')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}
