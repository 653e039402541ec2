// The audit page: new events come by a watch, in order and once, and the page asks again only if it may have missed some.

import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import type { Page } from 'playwright-core'
import { notRun } from '../support/missing-tool.ts'
import { type ConsoleStage, found, openConsoleStage, ours } from './stage.ts'

if (!found) notRun('Chromium')
else
  suite('console: audit', () => {
    let stage: ConsoleStage
    before(async () => {
      stage = await openConsoleStage()
      await makeTeam('before')
    })
    after(() => stage.close())

    const makeTeam = (name: string) => stage.ask('POST', `${ours}/teams`, { metadata: { name } })
    const row = (page: Page, name: string) => page.getByRole('row', { name: `created teams ${name}` })

    /** A signed-in page, and the addresses of its requests for audit events. */
    async function open(path: string, first = 'before') {
      const page = await stage.signedIn()
      const lists: string[] = []
      const watches: string[] = []
      page.on('request', request => {
        const { pathname, search } = new URL(request.url())
        if (pathname.endsWith('/auditevents')) (search.includes('watch=') ? watches : lists).push(search)
      })
      const isWatched = page.waitForResponse(
        response => response.url().includes('/auditevents?') && response.url().includes('watch='),
      )
      await page.goto(stage.url + path)
      await isWatched
      await row(page, first).first().waitFor()
      return { page, lists, watches }
    }

    test('new events appear at the top without another search', async () => {
      const { page, lists, watches } = await open('audit?resource=teams&verb=create')
      const asked = lists.length
      for (const name of ['one', 'two', 'three']) await makeTeam(name)
      await row(page, 'three').waitFor()
      const names = await page.getByRole('row').getByRole('link').allTextContents()
      assert.deepEqual(names.slice(0, 4), ['three', 'two', 'one', 'before'])
      assert.equal(new Set(names).size, names.length, 'each event is shown once')
      assert.deepEqual([lists.length, watches.length], [asked, 1])
      await page.context().close()
    })

    test('the watch has the conditions of the search, and ends with the switch', async () => {
      const { page } = await open('audit?resource=teams&name=before')
      await makeTeam('elsewhere')
      await stage.ask('DELETE', `${ours}/teams/before`)
      await page.getByRole('row', { name: 'deleted teams before' }).waitFor()
      assert.equal(await row(page, 'elsewhere').count(), 0)
      await page.getByLabel('Show new events').uncheck()
      await makeTeam('before')
      // A page with the switch on has seen the event by now.
      const beside = await open('audit?resource=teams&verb=create')
      await row(beside.page, 'before').first().waitFor()
      assert.equal(await row(page, 'before').count(), 1)
      await page.getByLabel('Show new events').check()
      await row(page, 'before').nth(1).waitFor()
      for (const one of [page, beside.page]) await one.context().close()
    })

    test('after a restart of the server, events that the watch missed are read again', async () => {
      const { page } = await open('audit?resource=teams&verb=create')
      await page.context().setOffline(true)
      await makeTeam('missed')
      await stage.server.restart()
      await page.context().setOffline(false)
      await row(page, 'missed').waitFor()
      await makeTeam('later')
      await row(page, 'later').waitFor()
      await page.context().close()
    })

    test('the tab of an object follows its events as well', async () => {
      await makeTeam('followed')
      const { page, lists } = await open('teams/followed/events', 'followed')
      const asked = lists.length
      const merge = { 'content-type': 'application/merge-patch+json' }
      await stage.ask('PATCH', `${ours}/teams/followed`, { spec: { description: 'new' } }, merge)
      await page.getByRole('row', { name: 'changed teams followed' }).waitFor()
      assert.equal(lists.length, asked)
      await page.context().close()
    })

    test('times are local, in the table and in the search; the address has the time that the server reads', async () => {
      const timeZone = 'Asia/Tokyo'
      const page = await stage.signedIn({ context: await stage.context({ timezoneId: timeZone }) })
      await page.goto(`${stage.url}audit?resource=teams&name=before&verb=create&from=2026-01-31T20:15:07Z`)
      const { items } = await stage.ask(
        'GET',
        `${ours}/auditevents?fieldSelector=${encodeURIComponent('resource=teams,name=before,verb=create')}`,
      )
      const format = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium', timeZone })
      await row(page, 'before')
        .first()
        .getByText(format.format(Date.parse(items[0].stageTimestamp)))
        .waitFor()
      const from = page.getByLabel('From')
      assert.equal(await from.inputValue(), '2026-02-01T05:15:07')
      await from.fill('2026-02-01T09:00:00')
      await page.getByRole('button', { name: 'Search', exact: true }).click()
      await page.waitForURL(url => url.searchParams.get('from') === '2026-02-01T00:00:00.000Z')
      await page.context().close()
    })
  })
