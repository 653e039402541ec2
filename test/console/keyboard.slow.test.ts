// The console without a mouse: every task with the keyboard alone, visible focus, and dialogs that keep and return it.

import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import type { Locator, Page } from 'playwright-core'
import { notRun } from '../support/missing-tool.ts'
import { settled } from './hostile.ts'
import { type ConsoleStage, found, openConsoleStage, ours } from './stage.ts'

/** The element with the focus, unless it has an outline. An editor sets its outline a moment after it gets the focus. */
const unseen = `(async () => {
  const at = document.activeElement
  if (!at || at === document.body) return null
  const hasOutline = element => {
    const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(element)
    return (outlineStyle !== 'none' && parseFloat(outlineWidth) > 0) || boxShadow !== 'none'
  }
  const { width, height } = at.getBoundingClientRect()
  const isSeen = () => width > 0 && height > 0 && hasOutline(at.closest('.cm-editor') ?? at)
  for (let frames = 0; frames < 60 && !isSeen(); frames++) await new Promise(requestAnimationFrame)
  return isSeen() ? null : at.outerHTML.slice(0, 160)
})()`

if (!found) notRun('Chromium')
else
  suite('console: keyboard', () => {
    let stage: ConsoleStage
    let page: Page
    before(async () => {
      stage = await openConsoleStage()
      for (const name of ['apps', 'ops', 'web'])
        await stage.ask('POST', `${ours}/teams`, { metadata: { name }, spec: { displayName: `Team ${name}` } })
      await stage.ask('POST', `${ours}/namespaces/default/sharedsecrets`, {
        metadata: { name: 'registry' },
        spec: { stringData: { password: 'hunter2' } },
      })
      await stage.ask('POST', `${ours}/ownedaccesskeys`, {
        metadata: { name: 'ci' },
        spec: { displayName: 'Pipeline' },
      })
      page = await (await stage.context()).newPage()
    })
    after(() => stage.close())

    const press = (...keys: readonly string[]) =>
      keys.reduce((done, key) => done.then(() => page.keyboard.press(key)), Promise.resolve())
    const hasFocus = (target: Locator) => target.evaluate(element => element.matches(':focus'))
    const waitForFocus = (target: Locator) => target.and(page.locator(':focus')).waitFor()
    /** Presses Tab until the target has the focus. */
    const tabTo = async (target: Locator, key = 'Tab') => {
      await target.waitFor()
      for (let presses = 0; presses < 80; presses++) {
        if (await hasFocus(target)) return
        await press(key)
      }
      assert.fail(`the keyboard does not reach ${target}`)
    }
    const button = (name: string) => page.getByRole('button', { name, exact: true })
    const open = async (path: string) => {
      await page.goto(stage.url + path)
      await settled(page)
    }
    /** Opens a dialog with Enter. Checks that it takes the focus, keeps it, and gives it back on Escape. */
    const checkDialog = async (trigger: Locator, dialog: Locator) => {
      await tabTo(trigger)
      await press('Enter')
      await dialog.waitFor()
      await dialog
        .locator(':focus')
        .or(dialog.and(page.locator(':focus')))
        .first()
        .waitFor()
      for (const key of ['Tab', 'Shift+Tab'])
        for (let presses = 0; presses < 12; presses++) {
          await press(key)
          assert.ok(await dialog.evaluate(element => element.matches(':focus-within')), `${key} leaves the dialog`)
        }
      await press('Escape')
      await dialog.waitFor({ state: 'detached' })
      await waitForFocus(trigger)
    }

    test('sign in', async () => {
      await page.goto(stage.url)
      await tabTo(page.getByLabel('Access key'))
      await page.keyboard.type(stage.server.adminKey)
      await press('Enter')
      await page.getByRole('heading', { name: 'Hello, admin' }).waitFor()
    })

    test('the first stop skips to the content, on the same page', async () => {
      await open('teams')
      await press('Tab')
      await waitForFocus(page.getByRole('link', { name: 'Skip to the content' }))
      await press('Enter')
      await waitForFocus(page.locator('main'))
      assert.equal(page.url().replace(/#.*/, ''), `${stage.url}teams`)
      await press('Tab')
      assert.ok(await page.locator('main').evaluate(element => element.matches(':focus-within')))
    })

    test('jump to a list, filter it, move, open a row, and walk through the tabs', async () => {
      await open('')
      await press('g', 't')
      await page.getByRole('grid').getByRole('link', { name: 'web' }).waitFor()
      await press('/')
      await waitForFocus(page.getByRole('searchbox'))
      await page.keyboard.type('team')
      await tabTo(page.getByRole('grid'))
      await press('j', 'j', 'k', 'Enter')
      await page.getByRole('heading', { name: 'Team ops' }).waitFor()
      for (const [tab, shown] of [
        ['Members', 'No members yet'],
        ['Access', 'Who can change it'],
        ['YAML', 'displayName'],
      ] as const) {
        await tabTo(page.getByRole('navigation', { name: 'Sections' }).getByRole('link', { name: tab }))
        await press('Enter')
        await page.getByText(shown).first().waitFor()
      }
    })

    test('j and k move in a list from anywhere on its page', async () => {
      await open('teams')
      await page.getByRole('grid').getByRole('link', { name: 'web' }).waitFor()
      await press('j')
      await waitForFocus(page.getByRole('grid'))
      await press('j', 'j', 'Enter')
      await page.getByRole('heading', { name: 'Team web' }).waitFor()
    })

    test('the palette finds a team, and gives the focus back on Escape', async () => {
      await open('teams')
      await page.getByRole('grid').getByRole('link', { name: 'web' }).waitFor()
      await tabTo(button('Create team'))
      await press('Control+k')
      const field = page.getByRole('combobox', { name: 'Search or jump to…' })
      await waitForFocus(field)
      await press('Tab')
      assert.ok(await page.getByRole('dialog').evaluate(element => element.matches(':focus-within')))
      await press('Escape')
      await waitForFocus(button('Create team'))
      await press('Control+k')
      await waitForFocus(field)
      await page.keyboard.type('web')
      await page.getByRole('option', { selected: true }).filter({ hasText: 'web' }).waitFor()
      await press('Enter')
      await page.getByRole('heading', { name: 'Team web' }).waitFor()
    })

    test('the help opens with ?, and closes with Escape', async () => {
      await open('teams')
      await press('?')
      const dialog = page.getByRole('dialog', { name: 'Keyboard shortcuts' })
      await dialog.waitFor()
      await press('Escape')
      await dialog.waitFor({ state: 'detached' })
    })

    test('edit YAML, leave the editor with Tab, and save', async () => {
      await open('teams/web/yaml')
      await tabTo(page.getByRole('textbox', { name: 'YAML' }))
      await press('Control+End')
      await page.keyboard.type('  description: typed')
      await page.getByText('You have unsaved changes.').waitFor()
      await press('Escape')
      await tabTo(button('Save changes'))
      await press('Enter')
      await page.getByText('You have unsaved changes.').waitFor({ state: 'detached' })
      assert.equal((await stage.ask('GET', `${ours}/teams/web`)).spec.description, 'typed')
    })

    test('reveal, hide and edit a value; the focus stays in its row', async () => {
      await open('ns/default/secrets/registry')
      await tabTo(button('Reveal password'))
      await press('Enter')
      await page.getByText('hunter2').waitFor()
      await waitForFocus(button('Hide password'))
      await press('Enter')
      await waitForFocus(button('Reveal password'))
      await tabTo(button('Edit password'))
      await press('Enter')
      await waitForFocus(page.getByRole('textbox', { name: 'New value of password' }))
      await press('Control+a')
      await page.keyboard.type('typed')
      await tabTo(button('Undo the change of password'))
      await press('Enter')
      await waitForFocus(button('Edit password'))
    })

    test('rotate a key, keep the new one, and be back where it began', async () => {
      await open('keys/ci')
      await tabTo(button('Rotate'))
      await press('Enter')
      const ask = page.getByRole('dialog', { name: 'Rotate ci' })
      await ask.waitFor()
      await tabTo(ask.getByRole('button', { name: 'Rotate', exact: true }))
      await press('Enter')
      const once = page.getByRole('dialog', { name: 'The key of ci' })
      await tabTo(once.getByRole('checkbox'))
      await press('Escape', 'Space')
      await tabTo(once.getByRole('button', { name: 'Done' }))
      await press('Enter')
      await once.waitFor({ state: 'detached' })
      await waitForFocus(button('Rotate'))
    })

    test('dialogs take the focus, keep it, close with Escape and give it back', async () => {
      await open('teams/web')
      await checkDialog(button('Delete'), page.getByRole('dialog', { name: 'Delete team web?' }))
      await open('ns/default/secrets/registry')
      await checkDialog(button('Share'), page.getByRole('dialog', { name: 'Share registry with a team' }))
      await open('keys/ci')
      await checkDialog(button('Rotate'), page.getByRole('dialog', { name: 'Rotate ci' }))
      await open('teams')
      await checkDialog(page.getByRole('button', { name: /^Search or jump/ }), page.getByRole('dialog'))
    })

    test('every stop of the keyboard is visible, on every page', async () => {
      const paths = [
        '',
        'teams',
        'teams/web',
        'teams/new',
        'ns/default/secrets/registry',
        'ns/default/secrets/registry/history',
        'keys/ci',
        'access/why',
        'audit',
        'patches',
      ]
      for (const path of paths) {
        await open(path)
        for (let stops = 0; stops < 60; stops++) {
          await press('Tab')
          assert.equal(await page.evaluate<string | null>(unseen), null, path)
          if (await page.evaluate<boolean>('document.activeElement === document.body')) break
        }
      }
    })
  })
