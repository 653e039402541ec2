// The pages of the console at the root, over HTTPS and behind a prefix: sign-in, lists, live updates, objects, edits.

import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import type { Page } from 'playwright-core'
import { notRun } from '../support/missing-tool.ts'
import { type ConsoleStage, found, openConsoleStage, ours, type StageOptions } from './stage.ts'

const places: { readonly [name: string]: StageOptions } = {
  'HTTP on loopback': {},
  HTTPS: { scheme: 'https' },
  'behind a prefix': { prefix: '/tools/platform' },
}

if (!found) notRun('Chromium')
else
  for (const [place, options] of Object.entries(places))
    suite(`console: ${place}`, () => {
      let stage: ConsoleStage
      let page: Page
      before(async () => {
        stage = await openConsoleStage(options)
        for (const name of ['web', 'ops'])
          await stage.ask('POST', `${ours}/teams`, {
            metadata: { name },
            spec: { displayName: `Team ${name}`, users: ['ada'] },
          })
        await stage.ask('POST', `${ours}/namespaces/default/sharedsecrets`, {
          metadata: { name: 'registry' },
          spec: { stringData: { password: 'hunter2', user: 'svc' }, access: [{ verbs: ['get'], teams: ['web'] }] },
        })
        page = await stage.signedIn()
      })
      after(() => stage.close())
      const open = (path: string) => page.goto(stage.url + path)
      const grid = () => page.getByRole('grid')

      test('a wrong key is refused with the server’s reason, and the form stays', async () => {
        const context = await stage.context()
        const other = await context.newPage()
        await other.goto(stage.url)
        await other.getByLabel('Access key').fill('plat_wrong')
        await other.getByRole('button', { name: 'Sign in with an access key' }).click()
        await other.getByRole('alert').filter({ hasText: /key/ }).waitFor()
        await context.close()
      })

      test('a reload of a deep address shows the same page', async () => {
        await open('ns/default/secrets/registry/history')
        await page.getByRole('heading', { name: 'registry' }).waitFor()
        await page.reload()
        await page.getByRole('heading', { name: 'Versions' }).waitFor()
        assert.equal(page.url(), `${stage.url}ns/default/secrets/registry/history`)
      })

      test('a list is live: a new object appears, a changed one changes, a deleted one goes', async () => {
        await open('teams')
        await grid().getByRole('link', { name: 'web' }).waitFor()
        await page.getByText('live · 2').waitFor()
        await stage.ask('POST', `${ours}/teams`, { metadata: { name: 'late' }, spec: { displayName: 'First' } })
        await grid().getByText('First').waitFor()
        await stage.ask(
          'PATCH',
          `${ours}/teams/late`,
          { spec: { displayName: 'Second' } },
          { 'content-type': 'application/merge-patch+json' },
        )
        await grid().getByText('Second').waitFor()
        await stage.ask('DELETE', `${ours}/teams/late`)
        await grid().getByText('Second').waitFor({ state: 'detached' })
      })

      test('the filter is in the address, and the link of a row opens the object', async () => {
        await open('teams?q=ops')
        await page.getByText('live · 1 of 2').waitFor()
        await grid().getByRole('link', { name: 'ops' }).click()
        await page.getByRole('heading', { name: 'Team ops' }).waitFor()
        assert.equal(page.url(), `${stage.url}teams/ops`)
      })

      test('a masked value is not in the document; a reveal shows one value, and is a recorded read', async () => {
        await stage.ask('POST', `${ours}/namespaces/default/sharedsecrets`, {
          metadata: { name: 'mail' },
          spec: { stringData: { password: 'hunter2', user: 'svc' } },
        })
        await open('ns/default/secrets/mail')
        await page.getByRole('button', { name: 'Reveal password' }).waitFor()
        assert.ok(!(await page.content()).includes('hunter2'))
        assert.equal(
          (await stage.ask('GET', `${ours}/namespaces/default/sharedsecrets/mail/lastread`)).status.lastRead,
          undefined,
        )
        await page.getByRole('button', { name: 'Reveal password' }).click()
        await page.getByText('hunter2').waitFor()
        assert.ok(!(await page.content()).includes('>svc<'))
        assert.ok((await stage.ask('GET', `${ours}/namespaces/default/sharedsecrets/mail/lastread`)).status.lastRead)
        await page.getByRole('button', { name: 'Hide password' }).click()
        assert.ok(!(await page.content()).includes('hunter2'))
      })

      test('an edit of YAML is saved as a patch', async () => {
        await open('teams/web/yaml')
        const editor = page.getByRole('textbox', { name: 'YAML' })
        await editor.click()
        await page.keyboard.press('Control+End')
        await page.keyboard.type('  description: made here')
        await page.getByRole('button', { name: 'Save changes' }).click()
        await page.getByRole('button', { name: 'Save changes' }).waitFor({ state: 'detached' })
        assert.equal((await stage.ask('GET', `${ours}/teams/web`)).spec.description, 'made here')
      })

      test('sign-out ends the session in every tab', async () => {
        const context = await stage.context()
        const one = await stage.signedIn({ context })
        const other = await context.newPage()
        await other.goto(`${stage.url}teams`)
        await other.getByRole('grid').waitFor()
        await one.getByRole('button', { name: /admin/ }).click()
        await one.getByRole('menuitem', { name: 'Sign out', exact: true }).click()
        await one.getByLabel('Access key').waitFor()
        await other.getByRole('heading', { name: 'Sign in to platform' }).waitFor()
        await context.close()
      })
    })
