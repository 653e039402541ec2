// The rules of the console: an edit is never lost, permissions are explained, few streams, recovery.

import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import type { Locator, Page } from 'playwright-core'
import { notRun } from '../support/missing-tool.ts'
import { eventually } from '../support/wire.ts'
import { type ConsoleStage, found, openConsoleStage, ours } from './stage.ts'

const merge = { 'content-type': 'application/merge-patch+json' }

/** A script: the texts of all stored drafts, decrypted as the console does. */
const drafts = `(async () => {
  const of = request => new Promise(done => { request.onsuccess = () => done(request.result) })
  const db = await of(indexedDB.open('platform-console'))
  const all = await of(db.transaction('drafts').objectStore('drafts').getAll())
  const key = all.find(one => one instanceof CryptoKey)
  const texts = all.filter(one => one.data).map(({ iv, data }) => crypto.subtle.decrypt({ name: 'AES-GCM', iv }, key, data))
  return (await Promise.all(texts)).map(text => new TextDecoder().decode(text)).join()
})()`

if (!found) notRun('Chromium')
else
  suite('console: rules', () => {
    let stage: ConsoleStage
    before(async () => {
      stage = await openConsoleStage()
    })
    after(() => stage.close())

    const makeTeam = (name: string, spec: object = {}) =>
      stage.ask('POST', `${ours}/teams`, { metadata: { name }, spec })
    const patchTeam = (name: string, spec: object) => stage.ask('PATCH', `${ours}/teams/${name}`, { spec }, merge)
    const keyFor = async (user: string): Promise<string> =>
      (await stage.ask('POST', `${ours}/ownedaccesskeys`, { spec: { user } })).spec.key
    const typeInYaml = async (page: Page, name: string, line: string) => {
      await page.goto(`${stage.url}teams/${name}/yaml`)
      await page.getByRole('textbox', { name: 'YAML' }).click()
      await page.keyboard.press('Control+End')
      await page.keyboard.type(line)
      await page.getByText('You have unsaved changes.').waitFor()
    }
    /** The notice moves the buttons below it, so a click must wait for it. */
    const changedMeanwhile = (page: Page) =>
      page.getByText('Somebody has changed the object since you began.').waitFor()
    const saved = (page: Page) => page.getByText('You have unsaved changes.').waitFor({ state: 'detached' })
    const save = (page: Page) => page.getByRole('button', { name: 'Save changes' }).click()

    test('a change of somebody else neither touches the text nor is lost by the save', async () => {
      await makeTeam('apart')
      const page = await stage.signedIn()
      await typeInYaml(page, 'apart', '  description: mine')
      await patchTeam('apart', { displayName: 'theirs' })
      await changedMeanwhile(page)
      assert.match((await page.getByRole('textbox', { name: 'YAML' }).textContent()) ?? '', /description: mine/)
      await save(page)
      await saved(page)
      const { spec } = await stage.ask('GET', `${ours}/teams/apart`)
      assert.deepEqual([spec.description, spec.displayName], ['mine', 'theirs'])
      await page.context().close()
    })

    test('a change of the same field opens a three-way merge; the chosen text is saved', async () => {
      await makeTeam('same', { description: 'first' })
      const page = await stage.signedIn()
      await page.goto(`${stage.url}teams/same/yaml`)
      const editor = page.getByRole('textbox', { name: 'YAML' })
      await editor.getByText('first').dblclick()
      await page.keyboard.type('mine')
      await page.getByText('You have unsaved changes.').waitFor()
      await patchTeam('same', { description: 'theirs' })
      await changedMeanwhile(page)
      await save(page)
      const dialog = page.getByRole('dialog', { name: 'Somebody else changed the same fields' })
      await dialog.getByText('In conflict: spec.description').waitFor()
      assert.match((await dialog.getByRole('textbox', { name: 'The newest version' }).textContent()) ?? '', /theirs/)
      assert.equal((await stage.ask('GET', `${ours}/teams/same`)).spec.description, 'theirs')
      await dialog.getByRole('button', { name: 'Use the right side' }).click()
      await save(page)
      await saved(page)
      assert.equal((await stage.ask('GET', `${ours}/teams/same`)).spec.description, 'mine')
      await page.context().close()
    })

    const apply = (path: string, kind: string, more: object) =>
      stage.ask(
        'PATCH',
        `${ours}/${path}?fieldManager=flux`,
        { apiVersion: 'management.platform.sh/v1', kind, ...more },
        { 'content-type': 'application/apply-patch+yaml' },
      )

    test('the editor shows who manages a field, and warns before a save changes a field of others', async () => {
      await apply('teams/managed', 'Team', { metadata: { name: 'managed' }, spec: { displayName: 'Applied' } })
      const page = await stage.signedIn()
      await page.goto(`${stage.url}teams/managed/yaml`)
      const managers = page.locator('section', { hasText: 'Who manages which fields' })
      const fieldsOf = (manager: string) =>
        managers.getByRole('list', { name: manager, exact: true }).getByRole('listitem').allTextContents()
      await managers.getByRole('heading', { name: 'flux' }).waitFor()
      assert.deepEqual(await fieldsOf('flux'), ['spec.displayName'])
      const editor = page.getByRole('textbox', { name: 'YAML' })
      const top = async (place: Locator) => Math.round((await place.boundingBox())?.y ?? 0)
      const line = editor.locator('.cm-line', { hasText: 'displayName' })
      const note = page.locator('.cm-notes').getByText('flux')
      assert.equal(await top(note), await top(line))

      const warning = page.getByText('flux applies spec.displayName.')
      await editor.click()
      await page.keyboard.press('Control+End')
      await page.keyboard.type('  description: mine')
      await page.getByText('You have unsaved changes.').waitFor()
      assert.equal(await warning.count(), 0, 'nobody else manages the description')
      await editor.getByText('Applied').dblclick()
      await page.keyboard.type('Changed')
      await warning.waitFor()
      await save(page)
      await saved(page)
      await warning.waitFor({ state: 'detached' })
      await managers.getByRole('heading', { name: 'this console' }).waitFor()
      assert.deepEqual(await fieldsOf('this console'), ['spec.description', 'spec.displayName'])
      await note.waitFor({ state: 'detached' })
      await page.context().close()
    })

    test('a change of a value that somebody else manages shows a warning', async () => {
      const path = 'namespaces/default/sharedsecrets/managed'
      const spec = { data: { password: 'b25l', user: 'c3Zj' } }
      await apply(path, 'SharedSecret', { metadata: { name: 'managed' }, spec })
      const page = await stage.signedIn()
      await page.goto(`${stage.url}ns/default/secrets/managed`)
      await page.getByRole('button', { name: 'Edit password' }).click()
      await page.getByText('flux applies spec.data.password.').waitFor()
      await page.context().close()
    })

    test('a draft survives a reload and navigation, and storage holds no readable copy of it', async () => {
      await stage.ask('POST', `${ours}/namespaces/default/sharedsecrets`, {
        metadata: { name: 'draft' },
        spec: { stringData: { password: 'old-value' } },
      })
      const page = await stage.signedIn()
      await page.goto(`${stage.url}ns/default/secrets/draft`)
      await page.getByRole('button', { name: 'Edit password' }).click()
      await page.getByRole('textbox', { name: 'New value of password' }).fill('typed-canary')
      await page.getByText('1 key changed').waitFor()
      await eventually('the draft is stored', async () => String(await page.evaluate(drafts)).includes('typed-canary'))
      await page.goto(`${stage.url}teams`)
      await page.goto(`${stage.url}ns/default/secrets/draft`)
      await page.reload()
      const field = page.getByRole('textbox', { name: 'New value of password' })
      await field.waitFor()
      assert.equal(await field.inputValue(), 'typed-canary')
      const stored = await page.evaluate(`(async () => {
        const db = await new Promise(done => { const r = indexedDB.open('platform-console'); r.onsuccess = () => done(r.result) })
        const all = await new Promise(done => { const r = db.transaction('drafts').objectStore('drafts').getAll(); r.onsuccess = () => done(r.result) })
        const text = all.map(one => one.data ? String.fromCharCode(...new Uint8Array(one.data)) : one.type).join()
        return text + JSON.stringify(localStorage) + JSON.stringify(sessionStorage) + document.title + location.href
      })()`)
      assert.ok(!String(stored).includes('typed-canary'))
      await page.getByRole('button', { name: 'Save changes' }).click()
      await page.getByText('Data, version 2').waitFor()
      await page.context().close()
    })

    test('a session that ends during an edit is renewed in place, and the edit is saved', async () => {
      await makeTeam('expiry')
      const { metadata, spec } = await stage.ask('POST', `${ours}/ownedaccesskeys`, { spec: { user: 'admin' } })
      const page = await stage.signedIn({ key: spec.key })
      await typeInYaml(page, 'expiry', '  description: kept')
      await stage.ask('DELETE', `${ours}/ownedaccesskeys/${metadata.name}`)
      await save(page)
      const dialog = page.getByRole('dialog', { name: 'Your session has ended' })
      await dialog.getByLabel('Access key').fill(stage.server.adminKey)
      await dialog.getByRole('button', { name: 'Sign in with an access key' }).click()
      await dialog.waitFor({ state: 'detached' })
      await save(page)
      await saved(page)
      assert.equal((await stage.ask('GET', `${ours}/teams/expiry`)).spec.description, 'kept')
      await page.context().close()
    })

    test('a forbidden action stays visible, and says what is missing', async () => {
      await makeTeam('looked-at', { users: ['ada'] })
      const page = await stage.signedIn({ key: await keyFor('ada') })
      await page.goto(`${stage.url}teams/looked-at`)
      const button = page.getByRole('button', { name: 'Delete' })
      await page.locator('button[aria-disabled=true]', { hasText: 'Delete' }).waitFor()
      await button.focus()
      await page.keyboard.press('Enter')
      await page.getByRole('dialog', { name: 'Needs delete on teams.' }).waitFor()
      await page.getByRole('link', { name: 'Explain' }).click()
      await page.getByRole('heading', { name: 'May ada delete team looked-at?' }).waitFor()
      await page.getByText('No', { exact: true }).waitFor()
      await page.context().close()
    })

    test('a permission that is revoked while somebody looks takes the object off the list', async () => {
      await makeTeam('revoked', { users: ['bob'] })
      const page = await stage.signedIn({ key: await keyFor('bob') })
      await page.goto(`${stage.url}teams`)
      await page.getByRole('grid').getByRole('link', { name: 'revoked' }).waitFor()
      await patchTeam('revoked', { users: [] })
      await page.getByRole('grid').getByRole('link', { name: 'revoked' }).waitFor({ state: 'detached' })
      await page.context().close()
    })

    test('a restart of the server shows a banner, then the list is live again without a flash', async () => {
      await makeTeam('before')
      const page = await stage.signedIn()
      await page.goto(`${stage.url}teams`)
      await page.getByText(/^live/).waitFor()
      await stage.server.restart(async () => {
        await page.getByText('The connection to the server is lost.').waitFor()
        assert.ok(await page.getByRole('grid').getByRole('link', { name: 'before' }).isVisible())
      })
      await page.getByText('The connection to the server is lost.').waitFor({ state: 'detached' })
      await makeTeam('afterwards')
      await page.getByRole('grid').getByRole('link', { name: 'afterwards' }).waitFor()
      await page.context().close()
    })

    test('ten tabs share at most three watches, and all of them are current', async () => {
      const context = await stage.context()
      let most = 0
      const watches = async () => {
        const { http, adminKey } = stage.server
        const metrics = await (
          await fetch(`${http}/metrics`, { headers: { authorization: `Bearer ${adminKey}` } })
        ).text()
        return Number(/apiserver_longrunning_requests\{verb="WATCH"\} (\d+)/.exec(metrics)?.[1])
      }
      const count = async () => {
        let now = 0
        // The server may notice a moment later that a page has closed its watches.
        await eventually('at most three watches', async () => {
          now = await watches()
          return now <= 3
        })
        most = Math.max(most, now)
      }
      const first = await stage.signedIn({ context })
      const pages = [first]
      const paths = ['teams', 'keys', 'secrets', 'users', 'project-secrets']
      for (let index = 0; index < 9; index++) pages.push(await context.newPage())
      for (const [index, page] of pages.entries()) {
        await page.goto(`${stage.url}${paths[index % paths.length]}`)
        await count()
      }
      await makeTeam('for-all-tabs')
      for (const [index, page] of pages.entries())
        if (paths[index % paths.length] === 'teams')
          await page.getByRole('grid').getByRole('link', { name: 'for-all-tabs' }).waitFor()
      await count()
      assert.ok(most > 0)
      // The tab that leads closes; another one takes over.
      await first.close()
      await makeTeam('after-the-leader')
      await pages[5]?.getByRole('grid').getByRole('link', { name: 'after-the-leader' }).waitFor()
      await count()
      await context.close()
    })
  })
