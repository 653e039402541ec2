// Tasks that a person who has never seen the console must be able to do with it alone.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import type { Page } from 'playwright-core'
import { exec } from '../support/exec.ts'
import { notRun } from '../support/missing-tool.ts'
import { type ConsoleStage, found, openConsoleStage, ours } from './stage.ts'

const merge = { 'content-type': 'application/merge-patch+json' }
const program = join(import.meta.dirname, '../../bin/platform.js')

if (!found) notRun('Chromium')
else
  suite('console: tasks', () => {
    let stage: ConsoleStage
    let page: Page
    const secrets = `${ours}/namespaces/default/sharedsecrets`
    before(async () => {
      stage = await openConsoleStage()
      for (const name of ['web', 'ops', 'gone'])
        await stage.ask('POST', `${ours}/teams`, {
          metadata: { name },
          spec: { users: name === 'web' ? ['ada'] : ['linus'] },
        })
      await stage.ask('POST', secrets, {
        metadata: { name: 'registry' },
        spec: { stringData: { password: 'first', user: 'svc' }, access: [{ verbs: ['get'], teams: ['web'] }] },
      })
      await stage.ask(
        'PATCH',
        `${secrets}/registry`,
        { spec: { stringData: { password: 'second' }, data: { user: null } } },
        merge,
      )
      await stage.ask('DELETE', `${ours}/teams/gone`)
      page = await stage.signedIn()
    })
    after(() => stage.close())

    const link = (name: string) => page.getByRole('link', { name, exact: true })
    const command = () =>
      page.getByRole('group', { name: 'The same on the command line' }).last().locator('code').innerText()
    /** Runs the command of the page, and returns its exit code and output. */
    const run = async () => {
      const { https, adminKey, directory } = stage.server
      const env = {
        ...process.env,
        PLATFORM_SERVER: https,
        PLATFORM_ACCESS_KEY: adminKey,
        PLATFORM_CA_FILE: join(directory, 'ca.crt'),
        HOME: directory,
      }
      const [name, ...words] = (await command()).split(' ')
      assert.equal(name, 'platform')
      const { code, stdout, stderr } = await exec(process.execPath, [program, ...words], { env, timeout: 30_000 })
      return { code, text: stdout + stderr }
    }

    test('find which team may read a secret, and why a colleague may not', async () => {
      await link('Global secrets').click()
      await link('registry').click()
      const card = page.locator('section', { has: page.getByRole('heading', { name: 'Who can read it' }) })
      await card.getByText('team web').waitFor()
      await card.getByRole('link', { name: 'Explain' }).click()
      await page.getByRole('heading', { name: 'Who can get sharedsecret default/registry?' }).waitFor()
      assert.match((await run()).text, /platform:team:web/)
      await page.getByLabel('User').fill('linus')
      await page.getByRole('button', { name: 'Ask why' }).click()
      await page.getByRole('heading', { name: 'May linus get sharedsecret default/registry?' }).waitFor()
      await page.getByText('No', { exact: true }).waitFor()
      await page.getByText('What would allow it').waitFor()
      assert.equal((await run()).code, 1)
    })

    test('create a key, and rotate it without downtime', async () => {
      await link('Access keys').click()
      await page.getByRole('button', { name: 'Create access key' }).click()
      await page.getByLabel('Name', { exact: true }).fill('pipeline')
      await page.getByRole('button', { name: 'Create access key' }).click()
      const first = await takeSecret()
      await page.getByRole('heading', { name: 'pipeline' }).waitFor()
      await page.getByRole('button', { name: 'Rotate' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Rotate', exact: true }).click()
      const second = await takeSecret()
      await page.getByRole('heading', { name: 'A rotation is running' }).waitFor()
      const status = async (key: string) => (await stage.server.request('GET', `${ours}/teams`, { key })).status
      assert.deepEqual([await status(first), await status(second)], [200, 200])
      assert.notEqual(first, second)
    })

    const takeSecret = async (): Promise<string> => {
      const secret = await page.getByTestId('secret').innerText()
      await page.getByLabel('I have stored the key').check()
      await page.getByRole('button', { name: 'Done' }).click()
      assert.match(secret, /^plat_/)
      assert.ok(!(await page.content()).includes(secret))
      return secret
    }

    test('roll a secret back', async () => {
      await link('Global secrets').click()
      await link('registry').click()
      await link('History').click()
      await page.getByRole('button', { name: 'Compare version 2 with the one before' }).click()
      await page.getByText('2 keys differ').waitFor()
      await page.getByRole('button', { name: 'Roll back to version 1' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Roll back' }).click()
      await page.getByText('restores 1').waitFor()
      const { spec } = await stage.ask('GET', `${secrets}/registry`)
      assert.deepEqual(spec.data, { password: btoa('first'), user: btoa('svc') })
    })

    test('share a secret with a team', async () => {
      await page.goto(`${stage.url}ns/default/secrets/registry`)
      await page.getByRole('button', { name: 'Share' }).click()
      await page.getByLabel('Team', { exact: true }).selectOption('ops')
      await page.getByRole('dialog').getByRole('button', { name: 'Share' }).click()
      await page.getByText('team ops').waitFor()
    })

    test('repair a patch that never settles', async () => {
      await link('Patch playground').click()
      const editor = page.getByRole('textbox', { name: 'Patches' })
      const type = async (reverse: string) => {
        await editor.click()
        await page.keyboard.press('Control+A')
        await page.keyboard.press('Delete')
        await editor.fill(
          `patches:\n- path: metadata.labels.app\n  expression: '"x-" + value'\n  reverseExpression: '${reverse}'`,
        )
        await page.getByRole('button', { name: 'Run' }).click()
      }
      await type('value + "-y"')
      await page.getByText('never settles').waitFor()
      await page
        .getByText(/Patch 1 keeps changing/)
        .first()
        .waitFor()
      await type('value.slice(2)')
      await page.getByText(/settles after/).waitFor()
      await page.getByText('gives back the original').waitFor()
    })

    test('a shared link of the playground runs only after a click', async () => {
      const requests: string[] = []
      page.on('request', request => requests.push(request.url()))
      const input = { object: 'kind: Endpoints', patches: 'patches: []', direction: 'toHost' }
      const fragment = Buffer.from(JSON.stringify(input)).toString('base64url')
      await page.goto('about:blank')
      await page.goto(`${stage.url}patches#${fragment}`)
      await page.getByText('This input came with the link.').waitFor()
      assert.ok(!requests.some(url => url.includes('patchpreviews')))
      assert.ok(!requests.some(url => url.includes(fragment)))
    })

    test('find who deleted a team', async () => {
      await link('Audit').click()
      await page.getByLabel('Verb').fill('delete')
      await page.getByLabel('Resource').fill('teams')
      await page.getByLabel('Name', { exact: true }).fill('gone')
      await page.getByRole('button', { name: 'Search', exact: true }).click()
      const row = page.getByRole('row', { name: /admin deleted teams gone/ })
      await row.waitFor()
      assert.match((await run()).text, /admin/)
      await page.getByRole('button', { name: 'Yesterday' }).click()
      await page.getByText('No event matches').waitFor()
    })
  })
