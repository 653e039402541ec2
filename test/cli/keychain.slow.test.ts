// The key in a real keychain: gnome-keyring behind a session bus, reached as the program reaches it, by secret-tool.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { openHome } from '../support/cli-home.ts'
import { findDesktop, inSession, withDesktop } from '../support/desktop-tools.ts'
import { type Server, startServer } from '../support/server.ts'

const found = await findDesktop()
let server: Server
before(async () => {
  server = await startServer()
})
after(() => server.stop())

withDesktop(found, 'gnome-keyring-daemon', desktop => {
  test('login stores the key in the keychain and in no file; every command finds it there, and logout removes it', async () => {
    // No file at all may hold a key: the keychain does.
    const home = await openHome({ mayHold: /^$/ })
    try {
      const commands = `set -e
platform login ${server.https} --ca-file ${server.directory}/ca.crt --access-key - < ${server.directory}/admin.key
platform whoami -o name
platform context list --no-headers | tr -s ' '
platform set secret ring token=-
platform run -s ring -- sh -c 'test \${#token} = 18'
ls "$HOME/.local/state/platform/copies" | wc -l
platform logout
platform whoami || echo "exit code $?"
`
      const { code, stdout, stderr } = await inSession(desktop, home, commands, 'canary-in-the-ring')
      assert.equal(code, 0, stdout + stderr)
      assert.match(
        stdout,
        /^admin\n\* 127\.0\.0\.1 https:\S+ admin default keychain\nsharedsecret\/ring created\n1\nexit code 4\n$/,
      )
      assert.doesNotMatch(stderr, /There is no keychain/)
      assert.match(home.told(), /"store","--label","platform: 127\.0\.0\.1"/)
    } finally {
      await home.close()
    }
  })
})
