// The key in a real keychain: gnome-keyring behind a session bus, reached as the program reaches it, by secret-tool.

import assert from 'node:assert/strict'
import { globSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { openHome } from '../support/cli-home.ts'
import { findDesktop, inSession, withDesktop } from '../support/desktop.ts'
import { type Server, startServer } from '../support/server.ts'

const found = await findDesktop()
let server: Server
before(async () => {
  server = await startServer()
})
after(() => server.stop())

const program = join(import.meta.dirname, '../../bin/platform.js')
const spawns = pathToFileURL(join(import.meta.dirname, '../support/told-spawns.mjs')).href

/** Files below a directory that hold a text. */
const holding = (directory: string, text: string) =>
  globSync(['**/*', '.*/**/*'], { cwd: directory }).filter(name => {
    const file = join(directory, name)
    return statSync(file).isFile() && readFileSync(file).includes(text)
  })

withDesktop(found, 'gnome-keyring-daemon', desktop => {
  test('login puts the key into the keychain and into no file; every command finds it there, and logout takes it out', async () => {
    const home = await openHome()
    try {
      const commands = `platform() { '${process.execPath}' --import '${spawns}?log='"$HOME/spawns" '${program}' "$@"; }
set -e
platform login ${server.https} --ca-file ${server.directory}/ca.crt --access-key - < ${server.directory}/admin.key
platform whoami -o name
platform context list --no-headers | tr -s ' '
printf canary-in-the-ring | platform set secret ring token=-
platform run -s ring -- sh -c 'test \${#token} = 18'
ls "$HOME/.local/state/platform/copies" | wc -l
platform logout
platform whoami || echo "exit code $?"
`
      const { code, stdout, stderr } = await inSession(desktop, home.directory, commands)
      assert.equal(code, 0, stdout + stderr)
      assert.match(
        stdout,
        /^admin\n\* 127\.0\.0\.1 https:\S+ admin default keychain\nsharedsecret\/ring created\n1\nexit code 4\n$/,
      )
      assert.doesNotMatch(stderr, /there is no keychain here/)
      assert.match(readFileSync(join(home.directory, 'spawns'), 'utf8'), /"store","--label","platform: 127\.0\.0\.1"/)
      assert.deepEqual(holding(home.directory, server.adminKey), [], 'the arguments of secret-tool included')
      assert.deepEqual(holding(home.directory, 'canary-in-the-ring'), ['session.sh'], 'the test’s own script alone')
    } finally {
      await home.close()
    }
  })
})
