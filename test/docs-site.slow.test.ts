// The documentation site in a real browser: from files and below a path, without other requests, with search, and accessible in both themes.
// With PLATFORM_SHOTS=DIRECTORY, saves pictures.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, normalize } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { type Browser, chromium, type Page } from 'playwright-core'
import { buildSite } from '../docs/site/build.ts'
import { findChromium } from './support/chromium.ts'
import { notRun } from './support/missing-tool.ts'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const shots = process.env['PLATFORM_SHOTS']
const types: { readonly [end: string]: string } = {
  html: 'text/html; charset=utf-8',
  css: 'text/css',
  js: 'text/javascript',
  svg: 'image/svg+xml',
}

/** Pages with all parts of the layout. The others are checked in one theme and size, because the check takes a second. */
const varied = ['index.html', 'quick-start.html', 'bench.html', 'decisions.html']

const found = await findChromium()
if (!found) notRun('Chromium')
else
  suite('documentation site', () => {
    const site = mkdtempSync(join(tmpdir(), 'platform-site-'))
    const pages = buildSite({ output: site })
    const server = createServer(({ url = '' }, response) => {
      const path = normalize(decodeURIComponent(new URL(url, 'http://site').pathname)).replace(/^\/manual\//, '')
      try {
        const body = readFileSync(join(site, path))
        response.writeHead(200, { 'Content-Type': types[path.split('.').at(-1) ?? ''] ?? 'text/plain' }).end(body)
      } catch {
        response.writeHead(404).end()
      }
    })
    let browser: Browser
    let served: string
    before(async () => {
      const env = { ...process.env, ...found.env } as Record<string, string>
      browser = await chromium.launch({ executablePath: found.executablePath, env, args: ['--no-sandbox'] })
      await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
      served = `http://127.0.0.1:${(server.address() as AddressInfo).port}/manual`
    })
    after(async () => {
      await browser?.close()
      server.close()
      rmSync(site, { recursive: true })
    })

    /** A page, and everything that it requests or complains about. */
    async function open(options: Parameters<Browser['newPage']>[0] = {}) {
      const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options })
      const requests: string[] = []
      const complaints: string[] = []
      page.on('request', request => requests.push(request.url()))
      page.on('requestfailed', request => {
        const why = request.failure()?.errorText ?? ''
        // A navigation ends the requests of the page before.
        if (why !== 'net::ERR_ABORTED') complaints.push(`${request.url()}: ${why}`)
      })
      page.on('console', message => complaints.push(message.text()))
      page.on('pageerror', error => complaints.push(error.message))
      return { page, requests, complaints }
    }

    const search = async (page: Page, words: string) => {
      await page.keyboard.press('/')
      await page.keyboard.type(words)
      await page.waitForSelector('#site-results [role=option]')
    }

    for (const name of ['files', 'a path of a server'])
      test(`works from ${name}, and requests nothing else`, async () => {
        const base = name === 'files' ? pathToFileURL(site).href : served
        const { page, requests, complaints } = await open()
        for (const { target } of pages) await page.goto(`${base}/${target}`)
        await page.goto(`${base}/index.html`)
        await search(page, 'emergency key')
        await page.keyboard.press('ArrowDown')
        await page.keyboard.press('ArrowUp')
        await page.keyboard.press('Enter')
        await page.waitForURL(/html#.*emergency-key$/)
        assert.deepEqual(complaints, [])
        assert.deepEqual(
          requests.filter(url => !url.startsWith(base)),
          [],
        )
        await page.close()
      })

    test('the search has no result for an unknown word, and Escape closes it', async () => {
      const { page } = await open()
      await page.goto(`${served}/decisions.html`)
      await page.keyboard.press('/')
      await page.keyboard.type('xyzzyx')
      await page.getByText('No results for xyzzyx').waitFor({ state: 'attached' })
      await page.keyboard.press('Escape')
      assert.equal(await page.locator('#site-results').isVisible(), false)
      assert.equal(await page.locator('#site-search').inputValue(), '')
      await page.close()
    })

    test('the theme follows the system, and a choice stays', async () => {
      const { page } = await open({ colorScheme: 'dark' })
      const theme = () => page.evaluate('document.documentElement.dataset.theme')
      await page.goto(`${served}/index.html`)
      assert.equal(await theme(), 'dark')
      await page.getByRole('button', { name: 'Use the light theme' }).click()
      await page.goto(`${served}/cli.html`)
      assert.equal(await theme(), 'light')
      await page.close()
    })

    test('the menu opens on a narrow screen', async () => {
      const { page } = await open({ viewport: { width: 390, height: 844 } })
      await page.goto(`${served}/kubernetes.html`)
      const link = page.getByRole('link', { name: 'Quick starts' })
      assert.equal(await link.isVisible(), false)
      await page.getByRole('button', { name: 'Menu' }).click()
      await link.click()
      await page.waitForURL(/quick-start\.html$/)
      await page.close()
    })

    for (const colorScheme of ['light', 'dark'] as const)
      for (const width of [390, 1280])
        test(`every page fits ${width} pixels, and pages are accessible, ${colorScheme}`, async () => {
          const { page } = await open({ colorScheme, viewport: { width, height: 844 } })
          for (const { target } of pages) {
            await page.goto(`${served}/${target}`)
            const isChecked = (width === 1280 && colorScheme === 'light') || varied.includes(target)
            if (target === 'quick-start.html') await search(page, 'team')
            const excess = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
            assert.ok(excess <= 0, `${target} is ${excess} pixels too wide`)
            if (shots)
              await page.screenshot({ path: join(shots, `${target.replace('/', '-')}-${width}-${colorScheme}.png`) })
            if (!isChecked) continue
            // Not through the page, whose policy forbids it.
            const session = await page.context().newCDPSession(page)
            await session.send('Runtime.evaluate', { expression: axe })
            const { result } = await session.send('Runtime.evaluate', {
              expression:
                'axe.run().then(({ violations }) => JSON.stringify(violations.map(one => [one.id, one.nodes[0]?.html])))',
              awaitPromise: true,
            })
            assert.equal(result.value, '[]', target)
          }
          await page.close()
        })
  })
