// Every string of an object is untrusted: hostile strings in every field of every kind, in the audit log, in addresses
// and in messages of the server are shown as text.

import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import type { Page } from 'playwright-core'
import type { Kind } from '../../src/api/kind.ts'
import { listPath, objectPath, shownKinds } from '../../src/console/data/places.ts'
import { notRun } from '../support/missing-tool.ts'
import { assertOnlyText, type Made, makeHostile, markup, reversed, settled, watchedPage } from './hostile.ts'
import { type ConsoleStage, found, openConsoleStage, ours } from './stage.ts'

const hostile = `${markup}${reversed}`
const failed = 'This page has failed'

if (!found) notRun('Chromium')
else
  suite('console: hostile strings', () => {
    let stage: ConsoleStage
    let page: Page
    let strays: readonly string[]
    const made = new Map<Kind, readonly Made[]>()
    before(async () => {
      stage = await openConsoleStage()
      for (const kind of shownKinds)
        made.set(kind, [await makeHostile(stage.server, kind, false), await makeHostile(stage.server, kind, true)])
      ;({ page, strays } = await watchedPage(stage))
    })
    after(async () => {
      await stage.close()
      assert.deepEqual(strays, [], 'requests to other origins')
    })
    const visit = async (path: string) => {
      await page.goto(stage.url + path.replace(/^\//, ''))
      await settled(page)
      await assertOnlyText(page, path)
      assert.equal(await page.getByText(failed).count(), 0, `${path} failed`)
    }

    for (const kind of shownKinds)
      test(`${kind.kind}: list, every tab and the form`, async () => {
        const objects = made.get(kind) ?? []
        assert.ok((objects[0]?.fields ?? 0) > 0, 'no field accepts a hostile string')
        await visit(listPath(kind))
        await page.getByRole('grid').getByRole('link').first().waitFor()
        await assertOnlyText(page, 'rows')
        for (const at of objects) {
          await visit(objectPath(kind, at))
          const tabs = await page
            .getByRole('navigation', { name: 'Sections' })
            .getByRole('link')
            .evaluateAll(links => links.map(link => (link as unknown as { href: string }).href))
          assert.ok(tabs.length > 2, objectPath(kind, at))
          for (const tab of tabs) await visit(tab.slice(stage.url.length))
        }
        await visit(`${listPath(kind)}/new`)
        await visit(`${listPath(kind)}/new?as=yaml`)
      })

    test('names of properties are keys like others: reveal, edit, save', async () => {
      const secrets = `${ours}/namespaces/default/sharedsecrets`
      const body = '{"metadata":{"name":"keys"},"spec":{"stringData":{"__proto__":"one","constructor":"two"}}}'
      assert.equal((await stage.server.request('POST', secrets, { body })).status, 201)
      await visit('ns/default/secrets/keys')
      for (const [key, value] of [
        ['__proto__', 'one'],
        ['constructor', 'two'],
      ] as const) {
        await page.getByRole('button', { name: `Reveal ${key}` }).click()
        await page.getByText(value, { exact: true }).waitFor()
        await page.getByRole('button', { name: `Edit ${key}` }).click()
        await page.getByRole('textbox', { name: `New value of ${key}` }).fill(`${value} changed`)
      }
      await page.getByText('2 keys changed').waitFor()
      await page.getByRole('button', { name: 'Save changes' }).click()
      await page.getByText('Data, version 2').waitFor()
      const { text } = await stage.server.request('GET', `${secrets}/keys`)
      for (const value of ['one changed', 'two changed'])
        assert.ok(text.includes(Buffer.from(value).toString('base64')), value)
    })

    test('a manager with a hostile name: beside the lines, in the list of managers, in the warning', async () => {
      const manager = '<img data-xss src=x onerror=ran()>'
      const path = `${ours}/teams?fieldManager=${encodeURIComponent(manager)}`
      await stage.ask('POST', path, { metadata: { name: 'managed' }, spec: { description: 'first' } })
      await visit('teams/managed/yaml')
      await page.locator('.cm-notes').getByText(manager).first().waitFor()
      await page.getByRole('heading', { name: manager }).waitFor()
      await page.getByRole('textbox', { name: 'YAML' }).getByText('first').dblclick()
      await page.keyboard.type('changed')
      await page.getByText(`${manager} has set spec.description`).waitFor()
      await assertOnlyText(page, 'warning')
    })

    test('a user with a hostile name: home, menu, what is forbidden and why', async () => {
      const { spec } = await stage.ask('POST', `${ours}/ownedaccesskeys`, { spec: { user: hostile } })
      const other = await watchedPage(stage, spec.key)
      const { origin, pathname } = new URL(stage.url)
      for (const path of [
        '',
        'teams',
        'audit',
        'access/why?verb=delete&resource=teams&group=management.platform.sh&name=x',
      ]) {
        await other.page.goto(`${origin}${pathname}${path}`)
        await settled(other.page)
        await assertOnlyText(other.page, path)
      }
      await other.page.getByRole('button', { name: /img data-xss/ }).click()
      await other.page.getByRole('menu').waitFor()
      await assertOnlyText(other.page, 'menu')
      await other.page.goto(`${stage.url}teams`)
      await other.page.locator('button[aria-disabled=true]', { hasText: 'Create team' }).focus()
      await other.page.keyboard.press('Enter')
      await other.page.getByRole('dialog').waitFor()
      await assertOnlyText(other.page, 'denial')
      assert.deepEqual(other.strays, [])
      await other.page.context().close()
    })

    test('audit events: agents, paths, names and messages from requests', async () => {
      const segment = encodeURIComponent(hostile)
      for (const path of [
        `${ours}/teams/${segment}`,
        `${ours}/namespaces/${segment}/sharedsecrets/x`,
        `/${segment}`,
        `${ours}/${segment}`,
      ])
        for (const method of ['GET', 'DELETE'])
          await stage.server.request(method, path, { headers: { 'user-agent': markup.replaceAll(' ', '/') } })
      await visit('audit')
      await page.getByText('tried to delete').first().waitFor()
      await assertOnlyText(page, 'writes')
      await page.getByRole('checkbox', { name: 'Show reads' }).click()
      await page.getByText('tried to get').first().waitFor()
      await assertOnlyText(page, 'reads')
      await visit(`audit?name=${segment}&user=${segment}`)
      await visit('')
    })

    test('parameters, fragments and segments of every address', async () => {
      const value = encodeURIComponent(hostile)
      const names = [
        'q',
        'sort',
        'ns',
        'as',
        'diff',
        'user',
        'verb',
        'resource',
        'group',
        'subresource',
        'namespace',
        'name',
        'who',
        'reads',
        'uid',
        'code',
        'from',
        'to',
      ]
      const pages = [
        '',
        'teams',
        'secrets',
        'teams/new',
        'ns/default/secrets/keys/history',
        'access/why',
        'tokens/new',
        'audit',
        'patches',
        'signed-in-not',
      ]
      const values = [value, '123', '%7B%22a%22%3A1%7D', '%E0%A4%A']
      for (const path of pages)
        for (const one of values)
          await visit(`${path}?${names.map(name => `${name}=${one}`).join('&')}&__proto__=x#${one}`)
      for (const path of ['teams', 'kinds', 'ns/default/secrets', ''])
        for (const one of [value, '__proto__', 'constructor', '%E0%A4%A', '..%2f..%2fx']) await visit(`${path}/${one}`)
    })

    test('the palette', async () => {
      await visit('access/clusterroles')
      await page.keyboard.press('Control+k')
      await page.getByRole('combobox', { name: 'Search or jump to…' }).fill(hostile)
      await assertOnlyText(page, 'typed')
      await page.getByRole('combobox', { name: 'Search or jump to…' }).fill('gnp')
      await page.getByRole('option').first().waitFor()
      await assertOnlyText(page, 'found')
      await page.keyboard.press('Escape')
    })

    test('messages of the server that repeat the input', async () => {
      await visit('teams/new')
      await page.getByLabel('Name', { exact: true }).fill(hostile)
      await page.getByRole('button', { name: 'Check' }).click()
      await page.getByRole('alert').first().waitFor()
      await assertOnlyText(page, 'form')
      await visit('teams?q=x%3D<img>')
    })

    test('a shared link of the playground runs after a click only, and its results are text', async () => {
      const sent: string[] = []
      page.on('request', request => {
        if (request.url().includes('patchpreviews')) sent.push(request.url())
      })
      const object = JSON.stringify({
        apiVersion: 'v1',
        kind: 'Endpoints',
        metadata: { name: 'x', labels: { app: hostile } },
      })
      const patches = JSON.stringify({
        patches: [
          { path: 'metadata.labels.app', expression: 'value + value' },
          { path: hostile, expression: hostile },
        ],
      })
      for (const used of [patches, JSON.stringify({ patches: [JSON.parse(patches).patches[0]] })]) {
        const shared = Buffer.from(JSON.stringify({ object, patches: used, direction: hostile })).toString('base64url')
        await page.goto('about:blank')
        await visit(`patches#${shared}`)
        await page.getByText('This input came with the link.').waitFor()
        assert.deepEqual(sent.splice(0), [])
        await page.getByRole('button', { name: 'Run', exact: true }).click()
        await page.getByRole('heading', { name: 'Trace' }).or(page.getByRole('alert')).first().waitFor()
        await assertOnlyText(page, 'result')
        assert.equal(sent.splice(0).length, 1)
      }
      const wrong = Buffer.from(JSON.stringify({ object: '{', patches: hostile })).toString('base64url')
      await page.goto('about:blank')
      await visit(`patches#${wrong}`)
      await page.getByRole('button', { name: 'Run', exact: true }).click()
      await page.getByRole('alert').waitFor()
      await assertOnlyText(page, 'problem')
    })
  })
