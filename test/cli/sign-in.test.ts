// Login and logout with a real server: trust, the storage of the key, and the related messages.

import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { type CliHome, openHome } from '../support/cli-home.ts'
import { type Server, startServer } from '../support/server.ts'
import { withTerminal } from '../support/terminal.ts'

let server: Server
before(async () => {
  server = await startServer()
})
after(() => server.stop())

const fingerprint = () => /sha256:[0-9a-f]{64}/.exec(server.output())?.[0] ?? ''
const configFile = (home: CliHome) => join(home.directory, '.config/platform/contexts.json')
const keyFile = (home: CliHome) => join(home.directory, '.local/share/platform/keys/127.0.0.1')

async function atHome(work: (home: CliHome) => Promise<void>): Promise<void> {
  const home = await openHome()
  try {
    await work(home)
  } finally {
    await home.close()
  }
}

suite('sign-in', { concurrency: 2 }, () => {
  test('a key that names its server is not sent to another one', () =>
    atHome(async home => {
      const words = ['login', server.https, '--ca-fingerprint', fingerprint(), '--access-key', '-']
      const said = await home.fails(2, words, { stdin: `${server.adminKey}@https://elsewhere.test:8443` })
      assert.match(said, /the key is for https:\/\/elsewhere\.test:8443 and was not sent to https:\/\/127\.0\.0\.1/)
      await home.ok(words, { stdin: `${server.adminKey}@${server.https}#${fingerprint()}` })
      assert.equal(await home.ok('whoami -o name'), 'admin\n')
    }))

  test('without a terminal a server is trusted by its CA file or fingerprint, never by --yes', () =>
    atHome(async home => {
      const said = await home.fails(2, ['login', server.https, '--yes', '--access-key', '-'], {
        stdin: server.adminKey,
      })
      assert.match(said, /--ca-file FILE or --ca-fingerprint/)
      await home.ok(['login', server.https, '--ca-fingerprint', fingerprint(), '--access-key', '-'], {
        stdin: `${server.adminKey}\n`,
      })
      assert.equal(await home.ok('whoami -o name'), 'admin\n')
      const other = await home.fails(7, ['login', server.https, '--ca-fingerprint', `sha256:${'0'.repeat(64)}`], {
        env: { PLATFORM_ACCESS_KEY: server.adminKey },
      })
      assert.match(other, /cannot trust .*nothing was sent/)
    }))

  test('a key is never an argument, and never repeated in a message', () =>
    atHome(async home => {
      const key = server.adminKey
      const said = await home.fails(2, ['login', server.https, '--access-key', key])
      assert.match(said, /only accepts -/)
      assert.equal(said.includes(key), false)
      const extra = await home.fails(2, ['login', server.https, key])
      assert.equal(extra.includes(key), false)
    }))

  test('a rejected key exits with 4 and stores nothing: unknown, mistyped, empty', () =>
    atHome(async home => {
      const login = ['login', server.https, '--ca-fingerprint', fingerprint(), '--access-key', '-']
      assert.match(await home.fails(4, login, { stdin: 'x'.repeat(40) }), /rejected the key/)
      assert.match(await home.fails(4, login, { stdin: `${server.adminKey.slice(0, -1)}_` }), /mistyped/)
      assert.match(await home.fails(2, login, { stdin: '\n' }), /empty/)
      assert.match(await home.fails(2, login.slice(0, 4), {}), /PLATFORM_ACCESS_KEY/)
      assert.match(await home.fails(4, 'whoami'), /not signed in: platform login URL/)
      assert.deepEqual(readdirSync(home.directory), [])
    }))

  test('the key is in a private file, and in no other file', () =>
    atHome(async home => {
      await home.signIn(server)
      assert.equal(statSync(keyFile(home)).mode & 0o777, 0o600)
      assert.equal(statSync(configFile(home)).mode & 0o777, 0o600)
      assert.equal(readFileSync(keyFile(home), 'utf8').trim(), server.adminKey)
      assert.equal(readFileSync(configFile(home), 'utf8').includes(server.adminKey), false)
    }))

  test('with a keychain the key is there and in no file', () =>
    atHome(async home => {
      const bin = join(home.directory, 'bin')
      mkdirSync(bin)
      const tool = `#!/bin/sh
case "$1" in
store) cat > "$HOME/keychain" ;;
lookup) cat "$HOME/keychain" 2>/dev/null ;;
clear) rm -f "$HOME/keychain" ;;
esac
`
      writeFileSync(join(bin, 'secret-tool'), tool, { mode: 0o755 })
      const env = { PATH: `${bin}:${process.env['PATH']}`, DBUS_SESSION_BUS_ADDRESS: 'unix:path=/nowhere' }
      await home.ok(['login', server.https, '--ca-fingerprint', fingerprint(), '--access-key', '-'], {
        stdin: server.adminKey,
        env,
      })
      assert.equal(await home.ok('whoami -o name', { env }), 'admin\n')
      assert.equal(readFileSync(join(home.directory, 'keychain'), 'utf8'), server.adminKey)
      assert.throws(() => statSync(keyFile(home)))
      await home.ok('logout', { env })
      assert.throws(() => statSync(join(home.directory, 'keychain')))
    }))

  test('two concurrent logins are both stored', () =>
    atHome(async home => {
      const login = (name: string) =>
        home.ok(['login', server.https, '--context', name, '--ca-fingerprint', fingerprint(), '--access-key', '-'], {
          stdin: server.adminKey,
        })
      await Promise.all(['a', 'b', 'c'].map(login))
      assert.deepEqual(
        (await home.ok('context list --no-headers'))
          .split('\n')
          .flatMap(line => /\b[abc]\b/.exec(line)?.[0] ?? [])
          .toSorted(),
        ['a', 'b', 'c'],
      )
      await home.ok('context use b')
      await home.ok('context delete a --yes')
      assert.match(await home.fails(2, 'context use a'), /unknown context "a"/)
      assert.match(await home.fails(2, 'context delete c'), /--yes/)
    }))

  test('a context of another user is not replaced without confirmation; the own one is renewed, and keeps its namespace', () =>
    atHome(async home => {
      const login = (more = '') => [
        'login',
        server.https,
        '--ca-fingerprint',
        fingerprint(),
        '--access-key',
        '-',
        ...more.split(' ').filter(Boolean),
      ]
      const at = '/apis/management.platform.sh/v1/ownedaccesskeys'
      const made = await server.request('POST', at, { body: { metadata: { name: 'joan' }, spec: { user: 'joan' } } })
      const { key } = made.body.spec
      await home.ok(login('-n build'), { stdin: server.adminKey })
      const said = await home.fails(2, login(), { stdin: key })
      assert.match(
        said,
        /the context "127.0.0.1" is for admin at https.*, not joan; choose another name with --context, or replace it with --yes/,
      )
      assert.equal(await home.ok('whoami -o name'), 'admin\n')
      await home.ok(login(), { stdin: server.adminKey })
      assert.match(await home.ok('context list'), / build /)
      await home.ok(login('--context joan'), { stdin: key })
      assert.equal(await home.ok('whoami -o name'), 'joan\n')
      assert.equal(await home.ok('whoami -o name --context 127.0.0.1'), 'admin\n')
      await home.ok(login('--yes'), { stdin: key })
      assert.equal(await home.ok('whoami -o name --context 127.0.0.1'), 'joan\n')
      const elsewhere = await home.fails(2, ['login', server.http, '--access-key', '-'], { stdin: key })
      assert.match(elsewhere, /the context "127.0.0.1" is for https/)
    }))

  test('two users who log in concurrently under one name do not get each other’s key', () =>
    atHome(async home => {
      const at = '/apis/management.platform.sh/v1/ownedaccesskeys'
      const made = await server.request('POST', at, { body: { metadata: { name: 'ned' }, spec: { user: 'ned' } } })
      const keys = [server.adminKey, made.body.spec.key as string]
      const login = ['login', server.https, '--ca-fingerprint', fingerprint(), '--access-key', '-']
      const ended = await Promise.all(keys.map(key => home.exec(login, { stdin: key })))
      const { user } = JSON.parse(readFileSync(configFile(home), 'utf8')).contexts['127.0.0.1']
      assert.equal(await home.ok('whoami -o name'), `${user}\n`)
      const codes = ended.map(({ code }) => code).toSorted()
      assert.ok(codes[0] === 0 && [0, 2, 6].includes(codes[1] ?? -1), `${codes}`)
      await Promise.all(keys.map(key => home.ok([...login, '--yes'], { stdin: key })))
      const after = JSON.parse(readFileSync(configFile(home), 'utf8')).contexts['127.0.0.1']
      assert.equal(await home.ok('whoami -o name'), `${after.user}\n`)
    }))

  test('token commands use the login, or a named kubeconfig', () =>
    atHome(async home => {
      assert.match(await home.fails(4, 'token revoke --user ada'), /not signed in/)
      await home.signIn(server)
      assert.match(
        await home.ok('token revoke --user ada --yes'),
        /tokens of the user ada issued until \S+ are no longer valid/,
      )
      assert.match(await home.ok('token rotate-key'), /^signing key \S+ created/)
      assert.match(await home.fails(2, 'token revoke --user ada --context nowhere'), /unknown context "nowhere"/)
      assert.match(await home.fails(2, 'token revoke'), /select the tokens/)
      assert.match(await home.fails(2, ['token', 'revoke', '--user', '']), /--user is empty: it requires NAME/)
      assert.match(
        await home.fails(2, 'token revoke --jti notauuid'),
        /--jti: "notauuid" is not a token id, such as 8f14e45f-ceea-467f-a8b5-5c2b9f0a6d1e/,
      )
      const own = await home.run('token revoke --key admin --yes')
      assert.match(own.stderr, /The key admin itself is still valid: platform disable accesskey admin/)
      assert.match(await home.fails(2, 'whoami', { env: { PLATFORM_ACCESS_KEY: '' } }), /PLATFORM_ACCESS_KEY is empty/)
      assert.match(await home.fails(2, 'set db password=hunter2'), /unknown command "set db"; did you mean/)
      const byFile = ['token', 'revoke', '--yes', '--user', 'ada', '--kubeconfig', server.kubeconfig]
      await home.ok(byFile, { env: { PLATFORM_CONTEXT: 'nowhere' } })
      assert.match(await home.fails(2, [...byFile, '--context', 'nowhere']), /nowhere/)
      assert.match(
        await home.fails(2, 'token revoke --user ada --kubeconfig nowhere'),
        /cannot read .*nowhere: there is no such file/,
      )
    }))

  test('files are where the XDG variables say, with private permissions; a relative path is ignored', () =>
    atHome(async home => {
      const env = {
        XDG_CONFIG_HOME: join(home.directory, 'c'),
        XDG_DATA_HOME: join(home.directory, 'd'),
        XDG_STATE_HOME: 'relative',
      }
      const login = ['login', server.https, '--ca-fingerprint', fingerprint(), '--access-key', '-']
      await home.ok(login, { stdin: server.adminKey, env })
      for (const [file, mode] of [
        ['c/platform/contexts.json', 0o600],
        ['d/platform/keys/127.0.0.1', 0o600],
        ['d/platform/keys', 0o700],
        ['c/platform', 0o700],
      ] as const)
        assert.equal(statSync(join(home.directory, file)).mode & 0o777, mode, file)
      assert.match(await home.fails(4, 'whoami'), /not signed in/)
      assert.equal(await home.ok('whoami -o name', { env }), 'admin\n')
      await home.ok('set secret here a=-', { env, stdin: 'x' })
      await home.exec('run -s here -- true', { env: { ...env, PLATFORM_PASSPHRASE: 'a passphrase' } })
      assert.equal(readdirSync(join(home.directory, '.local/state/platform/copies')).length, 1)
      assert.match(await home.fails(2, 'whoami', { env: { HOME: '' } }), /set HOME or XDG_CONFIG_HOME/)
      await home.ok('logout', { env })
    }))

  test('a broken contexts file is reported and left unchanged', () =>
    atHome(async home => {
      await home.signIn(server)
      for (const [text, why] of [
        ['{"contexts":', /not JSON/],
        ['[]', /must be an object/],
        ['{"contexts":{"a":{}}}', /"a" has no server/],
      ] as const) {
        writeFileSync(configFile(home), text)
        assert.match(await home.fails(1, 'whoami'), why)
        assert.match(await home.fails(1, ['login', server.https], { stdin: '' }), why)
        assert.equal(readFileSync(configFile(home), 'utf8'), text)
      }
    }))

  test('a server whose CA changed gets no key, and the message says what to do', () =>
    atHome(async home => {
      const other = await startServer()
      try {
        await home.signIn(other)
        const file = configFile(home)
        writeFileSync(file, readFileSync(file, 'utf8').replaceAll(other.https, server.https))
        assert.match(await home.fails(7, 'whoami'), /cannot trust .*nothing was sent.*platform login/s)
        const again = await home.fails(2, ['login', server.https, '--access-key', '-'], { stdin: server.adminKey })
        assert.match(again, /not the one you trusted before/)
      } finally {
        await other.stop()
      }
    }))

  test('a pipeline needs one variable: key, server and fingerprint in PLATFORM_ACCESS_KEY', () =>
    atHome(async home => {
      const one = `${server.adminKey}@${server.https}#${fingerprint()}`
      assert.equal(await home.ok('whoami -o name', { env: { PLATFORM_ACCESS_KEY: one } }), 'admin\n')
      const three = {
        PLATFORM_ACCESS_KEY: server.adminKey,
        PLATFORM_SERVER: server.https,
        PLATFORM_CA_FILE: join(server.directory, 'ca.crt'),
      }
      assert.equal(await home.ok('whoami -o name', { env: three }), 'admin\n')
      const wrong = `${server.adminKey}@${server.https}#sha256:${'0'.repeat(64)}`
      assert.match(await home.fails(7, 'whoami', { env: { PLATFORM_ACCESS_KEY: wrong } }), /nothing was sent/)
      assert.deepEqual(readdirSync(home.directory), [], 'and it leaves no file')
    }))

  test('plain http is only for this machine; an invalid URL is a usage error', () =>
    atHome(async home => {
      assert.match(await home.fails(2, 'login http://plane.example --access-key -'), /not encrypted/)
      assert.match(await home.fails(2, 'login https://a:b@plane.example'), /contains a user or password/)
      await home.ok(['login', server.http, '--access-key', '-'], { stdin: server.adminKey })
      assert.match(await home.ok('status'), /not encrypted \(loopback only\)/)
      assert.match(await home.fails(7, 'login https://127.0.0.1:1 --yes --access-key -'), /connection refused/)
    }))

  test('whoami shows key, scope, expiry and teams with their reason; status whether the server responds', () =>
    atHome(async home => {
      const at = '/apis/management.platform.sh/v1'
      await server.request('POST', `${at}/teams`, { body: { metadata: { name: 'front' }, spec: { users: ['ada'] } } })
      await server.request('POST', `${at}/teams`, { body: { metadata: { name: 'ops' }, spec: { groups: ['night'] } } })
      const signIn = async (name: string, more: object) => {
        const spec = { user: 'ada', ttl: 7 * 86_400, groups: ['night'], ...more }
        const { body } = await server.request('POST', `${at}/ownedaccesskeys`, { body: { metadata: { name }, spec } })
        await home.signIn(server, body.spec.key)
      }
      await signIn('all', {})
      assert.match(
        await home.ok('whoami'),
        /Team: +front \(listed by name\)\nTeam: +ops \(through group night\)\nGroups: +night\n/,
      )
      await signIn('ada', { scope: { roles: [{ role: 'platform-cli' }] } })
      const said = await home.ok('whoami')
      assert.match(said, /^User: +ada\n/)
      assert.match(said, /Key: +ada\nScope: +roles: platform-cli\nExpires: +in 6d\n/)
      // The role does not cover the members of a team.
      assert.match(
        said,
        /Team: +front \(reported by the server\)\nTeam: +ops \(reported by the server\)\nGroups: +night\n/,
      )
      const { key, user } = JSON.parse(await home.ok('whoami -o json'))
      assert.deepEqual([user, key.name], ['ada', 'ada'])
      assert.match(await home.ok('status'), /Answers: +yes, in \d+ ms\nUser: +ada\nKey: +ada, expires in 6d/)
    }))

  // test/sign-in/terminal.test.ts has the sessions, which only a sign-in creates.
  test('logout removes an access key only locally', () =>
    atHome(async home => {
      const at = '/apis/management.platform.sh/v1/ownedaccesskeys'
      const made = await server.request('POST', at, { body: { metadata: { name: 'kept' }, spec: { user: 'eve' } } })
      await home.signIn(server, made.body.spec.key)
      await home.ok('logout')
      assert.equal((await server.request('GET', `${at}/kept`)).status, 200)
      assert.match(await home.fails(4, 'whoami'), /not signed in/)
      assert.throws(() => statSync(keyFile(home)))
      assert.match(await home.fails(4, 'logout'), /not signed in/)
    }))
})

await withTerminal(() => {
  void suite('at a terminal', () => {
    test('login shows the fingerprint, prompts for trust, then for the key without echo', () =>
      atHome(async home => {
        const terminal = home.terminal(['login', server.https])
        const shown = await terminal.sees(/Trust it\? \[y\/N\] $/)
        assert.ok(shown.includes(fingerprint()))
        terminal.type('Yes\r')
        await terminal.sees(/Access key: $/)
        terminal.type(`${server.adminKey}\r`)
        const { code, text } = await terminal.ended
        assert.equal(code, 0, text)
        assert.match(text, /Signed in to .* as admin/)
        assert.equal(text.includes(server.adminKey), false)
        assert.equal(await home.ok('whoami -o name'), 'admin\n')
      }))

    test('a context of another user is replaced only after a prompt is answered with yes', () =>
      atHome(async home => {
        await home.signIn(server)
        const at = '/apis/management.platform.sh/v1/ownedaccesskeys'
        const made = await server.request('POST', at, { body: { metadata: { name: 'mia' }, spec: { user: 'mia' } } })
        for (const [answer, user] of [
          ['n\r', 'admin'],
          ['y\r', 'mia'],
        ] as const) {
          const terminal = home.terminal(['login', server.https])
          await terminal.sees(/Access key: $/)
          terminal.type(`${made.body.spec.key}\r`)
          await terminal.sees(/is for admin at https.*, not mia\. Replace it\? \[y\/N\] $/)
          terminal.type(answer)
          await terminal.ended
          assert.equal(await home.ok('whoami -o name'), `${user}\n`)
        }
      }))

    test('credential prints no key to a terminal', () =>
      atHome(async home => {
        await home.signIn(server)
        const { code, text } = await home.terminal('credential').ended
        assert.equal(code, 2)
        assert.match(text, /does not write to a terminal/)
      }))

    test('without the answer yes nothing is sent', () =>
      atHome(async home => {
        const terminal = home.terminal(['login', server.https, '--yes'])
        await terminal.sees(/Trust it\? \[y\/N\] $/)
        terminal.type('sure\r')
        const { code, text } = await terminal.ended
        assert.equal(code, 1)
        assert.match(text, /not trusted; nothing was sent/)
      }))
  })
})
