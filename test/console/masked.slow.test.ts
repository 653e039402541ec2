// Values of a secret reach the browser only when somebody reveals or edits one, which stays on the page only while it is shown.

import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import type { Page } from 'playwright-core'
import { listPath, objectPath, shownKinds } from '../../src/console/data/places.ts'
import { notRun } from '../support/missing-tool.ts'
import { settled } from './hostile.ts'
import { type ConsoleStage, found, openConsoleStage, ours } from './stage.ts'

const canaries = { shared: 'canary-7Qw2-shared', old: 'canary-9Zk4-former', project: 'canary-3Lx8-project' }
const merge = { 'content-type': 'application/merge-patch+json' }
const base64 = (text: string) => Buffer.from(text).toString('base64')

/** Passes everything that the page receives to the test, also parts of streams. */
const listen = `{
  const real = window.fetch
  let count = 0
  window.fetch = async (...args) => {
    const response = await real(...args)
    const id = String(args[0].url ?? args[0]) + ' ' + count++ + ' ' + performance.timeOrigin
    const { body } = response.clone()
    const read = async () => {
      const decoder = new TextDecoder()
      for await (const part of body) await window.received(id, decoder.decode(part, { stream: true }))
    }
    if (body) read().catch(() => {})
    return response
  }
}`

/** Everything of the page that could keep a value. Databases are read as bytes. */
const traces = `(async () => {
  const text = value => value instanceof ArrayBuffer || ArrayBuffer.isView(value) ? String.fromCharCode(...new Uint8Array(value.buffer ?? value))
    : value instanceof CryptoKey ? 'key ' + value.extractable
    : value !== null && typeof value === 'object' ? Object.entries(value).map(([key, inner]) => key + '=' + text(inner)).join() : String(value)
  const databases = []
  for (const { name } of await indexedDB.databases()) {
    const db = await new Promise(done => { const r = indexedDB.open(name); r.onsuccess = () => done(r.result) })
    for (const store of db.objectStoreNames)
      databases.push(await new Promise(done => { const r = db.transaction(store).objectStore(store).getAll(); r.onsuccess = () => done(text(r.result)) }))
    db.close()
  }
  return {
    document: document.documentElement.outerHTML,
    fields: [...document.querySelectorAll('input, textarea')].map(({ value, defaultValue }) => value + defaultValue).join(),
    address: location.href, title: document.title, window: window.name,
    history: JSON.stringify(history.state),
    storage: JSON.stringify({ ...localStorage }) + JSON.stringify({ ...sessionStorage }),
    databases: databases.join(), cookies: document.cookie,
    caches: (await caches.keys()).join(),
  }
})()`

if (!found) notRun('Chromium')
else
  suite('console: masked values', () => {
    let stage: ConsoleStage
    let page: Page
    const received = new Map<string, string>()
    const logged: string[] = []
    before(async () => {
      stage = await openConsoleStage()
      const secrets = `${ours}/namespaces/default/sharedsecrets`
      await stage.ask('POST', secrets, {
        metadata: { name: 'registry' },
        spec: { stringData: { password: canaries.old, user: 'svc' } },
      })
      await stage.ask('PATCH', `${secrets}/registry`, { spec: { stringData: { password: canaries.shared } } }, merge)
      await stage.ask('POST', `${ours}/namespaces/p-shop/projectsecrets`, {
        metadata: { name: 'payment' },
        spec: { stringData: { token: canaries.project } },
      })
      await stage.ask('POST', `${ours}/ownedaccesskeys`, {
        metadata: { name: 'ci' },
        spec: { displayName: 'Pipeline' },
      })
      const context = await stage.context()
      await context.exposeFunction('received', (id: string, part: string) => {
        received.set(id, (received.get(id) ?? '') + part)
      })
      await context.addInitScript({ content: listen })
      context.on('console', message => logged.push(message.text()))
      page = await stage.signedIn({ context })
    })
    after(() => stage.close())

    const open = async (path: string) => {
      await page.goto(stage.url + path.replace(/^\//, ''))
      await settled(page)
    }
    /** Names of the places where one of the values is. */
    const placesOf = async (...values: readonly string[]): Promise<readonly string[]> => {
      const all = await page.evaluate<{ readonly [place: string]: string }>(traces)
      const isIn = (text: string) => values.some(value => text.includes(value) || text.includes(base64(value)))
      return [...Object.keys(all).filter(place => isIn(all[place] ?? '')), ...(logged.some(isIn) ? ['log'] : [])]
    }
    const responsesWith = (...values: readonly string[]) =>
      [...received].filter(([, text]) => values.some(value => text.includes(value) || text.includes(base64(value))))

    test('no page, tab or response contains a value that nobody revealed', async () => {
      const secrets = [
        ['SharedSecret', { namespace: 'default', name: 'registry' }],
        ['ProjectSecret', { namespace: 'p-shop', name: 'payment' }],
      ] as const
      const objects = secrets.flatMap(([name, at]) => {
        const kind = shownKinds.find(one => one.kind === name)
        assert.ok(kind)
        return ['', 'history', 'access', 'events', 'yaml'].map(tab => objectPath(kind, at, tab))
      })
      const why =
        'access/why?verb=get&resource=sharedsecrets&group=management.platform.sh&namespace=default&name=registry'
      const others = ['', 'audit', why, `${why}&who=true`, 'ns/default/secrets/registry/history?diff=1..2', 'patches']
      for (const path of [...shownKinds.map(listPath), ...objects, ...others]) {
        await open(path)
        assert.deepEqual(await placesOf(...Object.values(canaries)), [], path)
      }
      await open('secrets')
      await page.getByText(/^live/).waitFor()
      await stage.ask(
        'PATCH',
        `${ours}/namespaces/default/sharedsecrets/registry`,
        { spec: { displayName: 'Renamed' } },
        merge,
      )
      await page.getByRole('grid').getByText('Renamed').waitFor()
      assert.ok(
        [...received.keys()].some(url => url.includes('watch=')),
        'streams are recorded',
      )
      assert.ok(
        [...received.values()].some(text => text.includes('(omitted)')),
        'bodies are recorded',
      )
      assert.deepEqual(responsesWith(...Object.values(canaries)), [])
    })

    test('a reveal puts the value into one response and on the page, and nowhere else', async () => {
      await open('ns/default/secrets/registry')
      await page.getByRole('button', { name: 'Reveal password' }).click()
      await page.getByText(canaries.shared).waitFor()
      assert.deepEqual(await placesOf(canaries.shared), ['document'])
      assert.equal(responsesWith(canaries.shared).length, 1)
      assert.deepEqual(responsesWith(canaries.old, canaries.project), [])
      await page.getByRole('button', { name: 'Hide password' }).click()
      assert.deepEqual(await placesOf(canaries.shared), [])
      await page.getByRole('button', { name: 'Reveal password' }).click()
      await page.getByText(canaries.shared).waitFor()
      await page.getByRole('link', { name: 'History' }).click()
      await page.getByRole('heading', { name: 'Versions' }).waitFor()
      assert.deepEqual(await placesOf(canaries.shared), [])
      await page.goBack()
      await page.getByRole('button', { name: 'Reveal password' }).waitFor()
      assert.deepEqual(await placesOf(canaries.shared), [])
    })

    test('saving one value brings no other value to the browser', async () => {
      await open('ns/default/secrets/registry')
      await page.getByRole('button', { name: 'Edit user' }).click()
      const field = page.getByRole('textbox', { name: 'New value of user' })
      await field.fill('another')
      const before = responsesWith(canaries.shared).length
      const saved = page.waitForResponse(response => response.request().method() === 'PATCH')
      await page.getByRole('button', { name: 'Save changes', exact: true }).click()
      const { spec } = (await (await saved).json()) as { spec: { data: object } }
      assert.deepEqual(spec.data, { password: '(omitted)', user: '(omitted)' })
      await field.waitFor({ state: 'detached' })
      assert.equal(responsesWith(canaries.shared).length, before)
    })

    test('a draft of a value is in its field, and encrypted in the browser', async () => {
      await open('ns/default/secrets/registry')
      await page.getByRole('button', { name: 'Edit password' }).click()
      const field = page.getByRole('textbox', { name: 'New value of password' })
      await field.fill('canary-typed-5Tr')
      await page.getByText('1 key changed').waitFor()
      for (const place of await placesOf('canary-typed-5Tr')) assert.ok(['fields', 'document'].includes(place), place)
      await page.getByRole('button', { name: 'Discard' }).click()
      await field.waitFor({ state: 'detached' })
      assert.deepEqual(await placesOf('canary-typed-5Tr', canaries.shared), [])
    })

    test('a key that is shown once is gone from the page when its dialog closes', async () => {
      await open('keys/ci')
      await page.getByRole('button', { name: 'Rotate', exact: true }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Rotate', exact: true }).click()
      const dialog = page.getByRole('dialog', { name: 'The key of ci' })
      const secret = (await dialog.getByTestId('secret').textContent()) ?? ''
      assert.ok(secret.length > 20)
      assert.deepEqual(await placesOf(secret), ['document'])
      await dialog.getByRole('checkbox').check()
      await dialog.getByRole('button', { name: 'Done' }).click()
      await dialog.waitFor({ state: 'detached' })
      assert.deepEqual(await placesOf(secret), [])
      assert.equal(responsesWith(secret).length, 1)
    })
  })
