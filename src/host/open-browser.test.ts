// Which program opens a URL: $BROWSER, the desktop's, or none.

import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { eventually } from '../../test/support/wire.ts'
import { openBrowser } from './open-browser.ts'

const directory = mkdtempSync(join(tmpdir(), 'platform-browser-'))
after(() => rmSync(directory, { recursive: true }))
const url = 'https://plane.example/auth/cli?a=1&b=$(touch%20x)'

/** A program that writes its arguments to a file. */
function program(name: string): string {
  const file = join(directory, name)
  writeFileSync(file, `#!/bin/sh\nprintf '%s\\n' "$@" > '${file}.part'\nmv '${file}.part' '${file}.args'\n`)
  chmodSync(file, 0o755)
  return file
}
async function argumentsOf(file: string): Promise<string> {
  await eventually('the program ran', async () => existsSync(`${file}.args`))
  return readFileSync(`${file}.args`, 'utf8')
}
const PATH = `${directory}:/usr/bin:/bin`

test('BROWSER is a list: the first program that exists gets the URL, without a shell', async () => {
  const file = program('one')
  assert.equal(await openBrowser(url, { PATH, BROWSER: `/nowhere:${file} --new-window` }), true)
  assert.equal(await argumentsOf(file), `--new-window\n${url}\n`)
})

test('%s stands for the URL', async () => {
  const file = program('two')
  assert.equal(await openBrowser(url, { PATH, BROWSER: 'two --url=%s --fast' }), true)
  assert.equal(await argumentsOf(file), `--url=${url}\n--fast\n`)
})

test('without BROWSER, the desktop opens it; without a desktop, nothing does', async () => {
  const [linux, mac] = [program('xdg-open'), program('open')]
  assert.equal(await openBrowser(url, { PATH }, 'linux'), false)
  assert.equal(await openBrowser(url, { PATH, WAYLAND_DISPLAY: 'wayland-0' }, 'linux'), true)
  assert.equal(await argumentsOf(linux), `${url}\n`)
  assert.equal(await openBrowser(url, { PATH }, 'darwin'), true)
  assert.equal(await argumentsOf(mac), `${url}\n`)
  assert.equal(await openBrowser(url, { PATH, BROWSER: '', DISPLAY: ':0' }, 'linux'), false)
})
