// Lists of the console: the size of the first load, lists of several pages, and the filter.

import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import type { Page } from 'playwright-core'
import { notRun } from '../support/missing-tool.ts'
import { type ConsoleStage, found, openConsoleStage, ours } from './stage.ts'

const most = 220_000
const many = 460
const betweenLetters = 200

if (!found) notRun('Chromium')
else
  suite('console: lists', () => {
    let stage: ConsoleStage
    let page: Page
    before(async () => {
      stage = await openConsoleStage()
      const make = (at: number) => {
        const metadata = { name: `team-${String(at).padStart(4, '0')}`, labels: { env: at % 2 ? 'prod' : 'test' } }
        return stage.ask('POST', `${ours}/teams`, { metadata })
      }
      await Promise.all(Array.from({ length: many }, (_, at) => make(at)))
      page = await stage.signedIn()
    })
    after(() => stage.close())
    const filter = () => page.getByRole('searchbox', { name: 'Filter' })
    const counter = (text: string) => page.locator('main').getByText(text, { exact: true })

    test('the first load is at most 220 KB, compressed', async () => {
      const context = await stage.context({ storageState: await page.context().storageState() })
      const fresh = await context.newPage()
      await fresh.goto(`${stage.url}keys`)
      await fresh.getByRole('grid').getByRole('link', { name: 'admin' }).waitFor()
      const sizes = (await fresh.evaluate(`
        ['navigation', 'resource'].flatMap(type => performance.getEntriesByType(type))
          .filter(({ name }) => name.startsWith(document.baseURI))
          .map(({ name, encodedBodySize }) => [name, encodedBodySize])`)) as readonly [string, number][]
      assert.ok(sizes.length > 4, `no assets: ${sizes}`)
      const sum = sizes.reduce((total, [, size]) => total + size, 0)
      assert.ok(sum > 0 && sum <= most, `${sum} bytes: ${sizes.join(' ')}`)
      await context.close()
    })

    test('a list of several pages is complete and live', async () => {
      await page.goto(`${stage.url}teams`)
      await counter(`live · ${many}`).waitFor()
      await stage.ask('DELETE', `${ours}/teams/team-0459`)
      await counter(`live · ${many - 1}`).waitFor()
      await stage.ask('POST', `${ours}/teams`, { metadata: { name: 'team-0459', labels: { env: 'prod' } } })
      await counter(`live · ${many}`).waitFor()
      await page.getByRole('grid').focus()
      await page.keyboard.press('End')
      await page.getByRole('grid').getByRole('link', { name: 'team-0459' }).waitFor()
    })

    test('a tab that opens while another leads gets a complete list, and its changes', async () => {
      const other = await page.context().newPage()
      await other.goto(`${stage.url}teams`)
      await other.locator('main').getByText(`live · ${many}`, { exact: true }).waitFor()
      await stage.ask(
        'PATCH',
        `${ours}/teams/team-0000`,
        { spec: { displayName: 'seen twice' } },
        { 'content-type': 'application/merge-patch+json' },
      )
      for (const tab of [page, other]) {
        await tab.getByRole('searchbox', { name: 'Filter' }).fill('seen')
        await tab.getByRole('grid').getByRole('link', { name: 'team-0000' }).waitFor()
      }
      await other.close()
    })

    test('the filter follows the address, and the address the filter', async () => {
      await page.goto(`${stage.url}teams?q=0012`)
      await counter(`live · 1 of ${many}`).waitFor()
      assert.equal(await filter().inputValue(), '0012')
      await filter().fill('team-004')
      await counter(`live · 10 of ${many}`).waitFor()
      await page.waitForURL(/q=team-004$/)
      await filter().fill('nothing')
      await page.getByRole('button', { name: 'Clear the filter' }).click()
      await counter(`live · ${many}`).waitFor()
      await page.waitForURL(/teams$/)
      assert.equal(await filter().inputValue(), '')
    })

    test('a label that is being typed asks the server once, when it is complete', async () => {
      await page.clock.install()
      await page.goto(`${stage.url}teams`)
      await counter(`live · ${many}`).waitFor()
      await page.clock.pauseAt(Date.now() + 10_000)
      const asked = new Set<string>()
      page.on('request', request => {
        const selector = new URL(request.url()).searchParams.get('labelSelector')
        if (selector) asked.add(selector)
      })
      for (const letter of 'env=prod') {
        await page.clock.runFor(betweenLetters)
        await filter().pressSequentially(letter)
      }
      await page.clock.resume()
      await counter(`live · ${many / 2}`).waitFor()
      assert.equal(await filter().inputValue(), 'env=prod')
      assert.deepEqual([...asked], ['env=prod'])
    })

    test('a user who sees a part of more than 10,000 objects reads no number that is wrong', async () => {
      const { spec } = await stage.ask('POST', `${ours}/ownedaccesskeys`, { spec: { user: 'gil' } })
      const names = Array.from({ length: 10_001 }, (_, at) => `of-gil-${String(at).padStart(5, '0')}`).values()
      const lane = async () => {
        for (const name of names)
          await stage.ask('POST', `${ours}/teams`, { metadata: { name }, spec: { users: ['gil'] } })
      }
      await Promise.all(Array.from({ length: 16 }, lane))
      const other = await stage.signedIn({ key: spec.key, path: 'teams' })
      await other.getByText('live · 10,000 of more than 10,000', { exact: true }).waitFor()
      await other.getByText('These are the first 10,000 of more than 10,000').waitFor()
      await stage.ask('DELETE', `${ours}/teams/of-gil-10000`)
      await other.reload()
      await other.getByText('live · 10,000', { exact: true }).waitFor()
      await other.context().close()
    })
  })
