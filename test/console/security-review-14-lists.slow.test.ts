// Security review 14: lists and pages that said something wrong, or filled the audit log.

import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { notRun } from '../support/missing-tool.ts'
import { type ConsoleStage, found, openConsoleStage, ours } from './stage.ts'

const merge = { 'content-type': 'application/merge-patch+json' }
const secretsOf = (namespace: string) => `${ours}/namespaces/${namespace}/sharedsecrets`
const gone = 'Somebody has deleted this object.'

if (!found) notRun('Chromium')
else
  suite('console: lists and pages', () => {
    let stage: ConsoleStage
    before(async () => {
      // A test takes the file of this tab away.
      stage = await openConsoleStage({ caused: /Failed to fetch dynamically imported module: .*\/yaml-tab/ })
    })
    after(() => stage.close())

    const keyFor = async (user: string): Promise<{ readonly name: string; readonly key: string }> => {
      const { metadata, spec } = await stage.ask('POST', `${ours}/ownedaccesskeys`, { spec: { user } })
      return { name: metadata.name, key: spec.key }
    }

    test('a list that could not be read is not shown as empty, and is read again', async () => {
      const page = await stage.signedIn()
      await page.route('**/teams?*', route => route.abort())
      await page.getByRole('link', { name: /^Teams/ }).click()
      await page.getByRole('heading', { name: 'The server did not answer as expected' }).waitFor()
      await page.getByText('The connection to the server is lost.').waitFor()
      assert.equal(await page.getByText('No teams yet').count(), 0)
      await page.unroute('**/teams?*')
      await page.getByText('No teams yet').waitFor()
      await page.context().close()
    })

    test('a list stays while the session is renewed', async () => {
      await stage.ask('POST', `${ours}/teams`, { metadata: { name: 'stays' } })
      const { name, key } = await keyFor('admin')
      const page = await stage.signedIn({ key, path: 'teams' })
      await page.getByText(/^live/).waitFor()
      await stage.ask('DELETE', `${ours}/ownedaccesskeys/${name}`)
      const dialog = page.getByRole('dialog', { name: 'Your session has ended' })
      await dialog.getByLabel('Access key').waitFor()
      assert.ok(await page.getByText('stays', { exact: true }).isVisible())
      await dialog.getByLabel('Access key').fill(stage.server.adminKey)
      await dialog.getByRole('button', { name: 'Sign in with an access key' }).click()
      await page.getByRole('grid').getByRole('link', { name: 'stays' }).waitFor()
      await stage.ask('POST', `${ours}/teams`, { metadata: { name: 'after-renewal' } })
      await page.getByRole('grid').getByRole('link', { name: 'after-renewal' }).waitFor()
      await page.context().close()
    })

    test('Enter opens the row that was chosen, also if another row came above it', async () => {
      for (const name of ['row-b', 'row-c']) await stage.ask('POST', `${ours}/teams`, { metadata: { name } })
      const page = await stage.signedIn({ path: 'teams?q=row-' })
      await page.getByText(/^live/).waitFor()
      await page.getByRole('grid').focus()
      await page.keyboard.press('j')
      await stage.ask('POST', `${ours}/teams`, { metadata: { name: 'row-a' } })
      await page.getByRole('grid').getByRole('link', { name: 'row-a' }).waitFor()
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: 'row-c' }).waitFor()
      await page.context().close()
    })

    test('a watch that ends with 410 is opened again, and nothing is missing', async () => {
      const page = await stage.signedIn()
      const gone = { kind: 'Status', apiVersion: 'v1', metadata: {}, code: 410, reason: 'Expired', message: 'too old' }
      let opened = 0
      await page.route('**/teams?watch=*', async route => {
        if (++opened > 1) return await route.continue()
        await stage.ask('POST', `${ours}/teams`, { metadata: { name: 'during-410' } })
        await route.fulfill({ contentType: 'application/json', body: JSON.stringify({ type: 'ERROR', object: gone }) })
      })
      await page.getByRole('link', { name: /^Teams/ }).click()
      await page.getByRole('grid').getByRole('link', { name: 'during-410' }).waitFor()
      await page.getByText(/^live/).waitFor()
      await stage.ask('POST', `${ours}/teams`, { metadata: { name: 'after-410' } })
      await page.getByRole('grid').getByRole('link', { name: 'after-410' }).waitFor()
      assert.equal(opened, 2)
      await page.context().close()
    })

    test('the console requests a refused list once a minute', async () => {
      const { key } = await keyFor('ada')
      const context = await stage.context()
      const page = await stage.signedIn({ key, context })
      await page.clock.install()
      let refused = 0
      page.on('response', response => {
        if (response.status() === 403 && /\/users\?/.test(response.url())) refused++
      })
      await page.getByRole('link', { name: /^Users/ }).click()
      await page.getByRole('heading', { name: 'You may not see this' }).waitFor()
      for (let second = 0; second < 50; second += 5) await page.clock.runFor(5000)
      assert.ok(refused <= 4, `${refused} requests in 50 seconds`)
      assert.ok(await page.getByRole('heading', { name: 'You may not see this' }).isVisible())
      await context.close()
    })

    test('the page of the last object of its kind says that it was deleted', async () => {
      await stage.ask('POST', secretsOf('lonely'), { metadata: { name: 'last' }, spec: { stringData: { a: '1' } } })
      const page = await stage.signedIn({ path: 'ns/lonely/secrets/last' })
      await page.getByText('Data, version 1').waitFor()
      await stage.ask('DELETE', `${secretsOf('lonely')}/last`)
      await page.getByText(gone).waitFor()
      await page.reload()
      await page.getByRole('link', { name: 'What happened to it, in the audit log' }).click()
      await page.getByText('deleted sharedsecrets lonely/last').waitFor()
      await page.context().close()
    })

    test('an object behind the last row that was read is not said to be deleted', async () => {
      const secrets = secretsOf('default')
      for (const name of ['behind', 'listed'])
        await stage.ask('POST', secrets, { metadata: { name }, spec: { stringData: { a: '1' } } })
      const page = await stage.signedIn()
      const table = await stage.ask('GET', secrets, undefined, {
        accept: 'application/json;as=Table;v=v1;g=meta.k8s.io',
      })
      const rows = table.rows.filter(({ cells }: { readonly cells: readonly string[] }) => cells[0] === 'listed')
      assert.equal(rows.length, 1)
      await page.route('**/namespaces/default/sharedsecrets?limit=*', route =>
        route.fulfill({ json: { ...table, rows } }),
      )
      await page.clock.install()
      await page.goto(`${stage.url}ns/default/secrets/behind`)
      await page.getByText('Data, version 1').waitFor()
      const again = page.waitForResponse(/sharedsecrets\/behind\?omitData/)
      await page.clock.runFor(16_000)
      await again
      assert.equal(await page.getByText(gone).count(), 0)
      await page.context().close()
    })

    test('the home page does not show denials that the console itself caused', async () => {
      const { key } = await keyFor('carol')
      const counted = Promise.withResolvers<void>()
      const context = await stage.context()
      context.on('response', response => {
        if (response.status() === 403 && /\/users\?/.test(response.url())) counted.resolve()
      })
      const page = await stage.signedIn({ key, context })
      await counted.promise
      const denied = await stage.server.request('DELETE', `${ours}/teams/nothing`, { key })
      assert.equal(denied.status, 403)
      await page.reload()
      await page.getByText('carol may not delete teams nothing').waitFor()
      assert.equal(await page.getByText(/carol may not list/).count(), 0)
      await context.close()
    })

    test('a rotation is complete only if nobody used the old key since', async () => {
      const name = 'rotated'
      const made = await stage.ask('POST', `${ours}/ownedaccesskeys`, { metadata: { name }, spec: { user: 'dora' } })
      const rotation = { kind: 'KeyRotation', spec: { overlapSeconds: 3600 } }
      const { spec } = await stage.ask('POST', `${ours}/ownedaccesskeys/${name}/rotate`, rotation)
      const use = (key: string) => stage.server.request('GET', `${ours}/teams`, { key })
      await use(spec.key)
      const page = await stage.signedIn({ path: `keys/${name}` })
      await page.getByText('clients use the new key').waitFor()
      const isOldLater = async () => {
        const { keys } = (await stage.ask('GET', `${ours}/ownedaccesskeys/${name}`)).status
        return (keys[1].lastActivity ?? '') > keys[0].since
      }
      while (!(await isOldLater())) await use(made.spec.key)
      await use(spec.key)
      await page.reload()
      await page.getByText(/a client used the old key .*, after the rotation/).waitFor()
      await page.context().close()
    })

    test('a question with a user is about this user, also with Enter', async () => {
      const question = 'access/why?verb=get&resource=teams&name=stays&who=true'
      const page = await stage.signedIn({ path: question })
      await page.getByText('user admin').waitFor()
      await page.getByLabel('User').fill('nobody')
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: 'May nobody get team stays?' }).waitFor()
      assert.match(await page.title(), /^May nobody get team stays/)
      await page.context().close()
    })

    test('a tab whose file has another name after an upgrade of the server still opens', async () => {
      const page = await stage.signedIn({ path: 'teams/stays' })
      await page.getByText('Metadata', { exact: true }).waitFor()
      let requests = 0
      await page.route('**/assets/yaml-tab*.js', route =>
        ++requests > 1 ? route.continue() : route.fulfill({ status: 404 }),
      )
      await page.getByRole('link', { name: 'YAML' }).click()
      await page.getByRole('textbox', { name: 'YAML' }).waitFor()
      assert.equal(requests, 2)
      await page.context().close()
    })

    test('the navigation counts what the user sees, also if that is a part', async () => {
      const { key } = await keyFor('fay')
      for (const name of ['of-fay-1', 'of-fay-2', 'of-fay-3'])
        await stage.ask('POST', `${ours}/teams`, { metadata: { name }, spec: { users: ['fay'] } })
      const page = await stage.signedIn({ key })
      await page.getByRole('navigation').getByRole('link').filter({ hasText: 'Teams' }).getByText('3').waitFor()
      await page.context().close()
    })

    test('a name with commas is one value of a search', async () => {
      const { key } = await keyFor('cn=ada,ou=ops')
      await stage.server.request('DELETE', `${ours}/teams/searched`, { key })
      const page = await stage.signedIn({ path: `audit?user=${encodeURIComponent('cn=ada,ou=ops')}` })
      await page.getByText('tried to delete').waitFor()
      await page.context().close()
    })

    test('a permission that is granted while somebody looks enables the button', async () => {
      const { key } = await keyFor('emil')
      await stage.ask('POST', `${ours}/teams`, { metadata: { name: 'granted' }, spec: { users: ['emil'] } })
      const page = await stage.signedIn({ key, path: 'teams/granted' })
      await page.clock.install()
      await page.reload()
      const denied = page.locator('button[aria-disabled=true]', { hasText: 'Delete' })
      await denied.waitFor()
      const access = [{ verbs: ['delete'], users: ['emil'] }]
      await stage.ask('PATCH', `${ours}/teams/granted`, { spec: { access } }, merge)
      await page.clock.runFor(31_000)
      await denied.waitFor({ state: 'detached' })
      await page.context().close()
    })
  })

if (found)
  suite('console: below a path with unusual characters', () => {
    let stage: ConsoleStage
    before(async () => {
      stage = await openConsoleStage({ prefix: '/my%20plat%C3%A4(1)~$x' })
    })
    after(() => stage.close())

    test('pages, links, reload and sign-out work', async () => {
      await stage.ask('POST', `${ours}/teams`, { metadata: { name: 'web' } })
      const page = await stage.signedIn({ path: 'teams' })
      await page.getByRole('grid').getByRole('link', { name: 'web' }).click()
      await page.getByRole('heading', { name: 'web' }).waitFor()
      await page.reload()
      await page.getByRole('link', { name: 'YAML' }).click()
      await page.getByRole('textbox', { name: 'YAML' }).waitFor()
      await page.goBack()
      await page.getByText('Metadata', { exact: true }).waitFor()
      await page.getByRole('button', { name: 'admin' }).click()
      await page.getByRole('menuitem', { name: 'Sign out', exact: true }).click()
      await page.getByRole('heading', { name: 'Sign in to platform' }).waitFor()
      assert.ok(page.url().startsWith(stage.url), page.url())
    })
  })
