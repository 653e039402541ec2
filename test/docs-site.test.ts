// The documentation site: every page is in it, every link in the written files leads somewhere, and nothing is inline or external.

import assert from 'node:assert/strict'
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import MiniSearch from 'minisearch'
import { buildSite } from '../docs/site/build.ts'
import { searchOptions } from '../docs/site/search-index.ts'

const root = join(import.meta.dirname, '..')
const scratch = mkdtempSync(join(tmpdir(), 'platform-site-'))
after(() => rmSync(scratch, { recursive: true }))
const site = join(scratch, 'site')
const pages = buildSite({ output: site })
const read = (target: string) => readFileSync(join(site, target), 'utf8')
const htmlFiles = globSync('**/*.html', { cwd: site })

test('every page of docs/ and README is in the site and in its navigation', () => {
  const sources = ['README.md', ...globSync('docs/**/*.md', { cwd: root })].toSorted()
  assert.deepEqual(pages.map(({ source }) => source).toSorted(), sources)
  assert.deepEqual(htmlFiles.toSorted(), pages.map(({ target }) => target).toSorted())
  const home = read('index.html')
  for (const { target } of pages) assert.ok(home.includes(`href="./${target}"`), target)
})

test('no page has the same id twice', () => {
  for (const file of htmlFiles) {
    const ids = [...read(file).matchAll(/ id="([^"]+)"/g)].map(([, id]) => id)
    assert.deepEqual(
      ids.filter((id, at) => ids.indexOf(id) !== at),
      [],
      file,
    )
  }
})

test('every link and every anchor in the written files exists', () => {
  const ids = new Map(
    htmlFiles.map(file => [file, new Set([...read(file).matchAll(/ id="([^"]+)"/g)].map(([, id]) => id))]),
  )
  let count = 0
  for (const file of htmlFiles)
    for (const [, url = ''] of read(file).matchAll(/ (?:href|src)="([^"]*)"/g)) {
      if (/^(?:https?|mailto):/.test(url)) continue
      const [path = '', anchor = ''] = url.split('#')
      const target = path === '' ? file : join(dirname(file), decodeURIComponent(path))
      assert.ok(existsSync(join(site, target)), `${file}: ${url}`)
      if (anchor) assert.ok(ids.get(target)?.has(anchor), `${file}: ${url}`)
      count++
    }
  assert.ok(count > 1000)
})

test('a page has no inline script or style, and loads files of the site only', () => {
  for (const file of htmlFiles) {
    const html = read(file).replace(/<pre[\s\S]*?<\/pre>|<code>.*?<\/code>/g, '')
    assert.doesNotMatch(html, /<script(?![^>]* src="\.)|<style|<[^>]+\s(?:style|on\w+)=/i, file)
    for (const [, url = ''] of html.matchAll(/<(?:script|link|img)[^>]* (?:src|href)="([^"]*)"/g))
      assert.doesNotMatch(url, /^(?:\w+:|\/)/, file)
    assert.match(html, /http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'self'/)
  }
})

test('the search index finds the section about a word', () => {
  const stored = JSON.parse(read('search-index.js').replace(/^[^{]*/, ''))
  const index = MiniSearch.loadJSON(stored.index, searchOptions)
  const [best] = index.search('restore backup', { combineWith: 'AND', boost: { heading: 4, title: 2 } })
  assert.match(best?.['url'], /^(?:cli|operations)\.html#/)
  assert.ok(index.search('PodDisruptionBudget').some(one => one['url'] === 'kubernetes.html#one-replica'))
})

const build = (files: { readonly [path: string]: string }) => {
  const own = mkdtempSync(join(scratch, 'root-'))
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(own, path)), { recursive: true })
    writeFileSync(join(own, path), text)
  }
  return buildSite({ root: own, output: join(own, 'site') })
}

test('dead links and anchors stop the build, all at once', () => {
  const files = {
    'README.md': '# Start\n\n[a](docs/A.md#one) [b](docs/B.md) [c](docs/A.md#two)\n',
    'docs/A.md': '# A\n\n## One\n\n[here](#one), [there](#nowhere), [start](../README.md#start)\n',
  }
  assert.throws(() => build(files), {
    message: [
      'dead links; correct them in the pages:',
      'README.md: docs/B.md does not exist',
      'README.md: docs/A.md#two does not exist',
      'docs/A.md: docs/A.md#nowhere does not exist',
    ].join('\n'),
  })
})

test('headings have the anchors of GitHub, markup in code stays text, and a file name becomes the title of the page', () => {
  const markdown = '# A\n\n## `spec.x` & more: part 2\n\n## Same\n\n## Same\n\n```sh\necho "<b>" && true\n```\n'
  build({ 'README.md': markdown, 'docs/NEW.md': '# New page\n\n[NEW.md](NEW.md), [this](NEW.md)\n' })
  const [own = ''] = globSync('root-*/site/new.html', { cwd: scratch })
  const html = readFileSync(join(scratch, dirname(own), 'index.html'), 'utf8')
  for (const id of ['specx--more-part-2', 'same', 'same-1']) assert.ok(html.includes(`id="${id}"`), id)
  assert.ok(html.includes('echo &quot;&lt;b&gt;&quot; &amp;&amp; true'))
  const other = readFileSync(join(scratch, own), 'utf8')
  assert.ok(other.includes('<a href="new.html">New page</a>, <a href="new.html">this</a>'))
  assert.match(html, /<h2>More<\/h2><ul><li><a href="\.\/new\.html">New page/)
})
