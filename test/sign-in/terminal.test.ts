// `platform login` of people: in the browser, with a code on another device, several at once; sessions in lists, and logout.

import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { get } from 'node:http'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type CliHome, openHome } from '../support/cli-home.ts'
import { startServer } from '../support/server.ts'
import { withTerminal } from '../support/terminal.ts'
import { eventually } from '../support/wire.ts'
import { keys, openPeople, type PeopleStage, teams } from './people-stage.ts'

let stage: PeopleStage
before(async () => {
  stage = await openPeople()
  await stage.ask('POST', teams, { metadata: { name: 'builders' }, spec: { groups: ['corp:dev'] } })
})
after(() => stage.close())

type Person = { readonly home: CliHome; readonly env: NodeJS.ProcessEnv; opened(): string[] }

/** A home with a browser. */
async function atHome(work: (person: Person) => Promise<void>): Promise<void> {
  const home = await openHome()
  const opened = join(home.directory, 'opened')
  const script = join(home.directory, 'browser')
  const line = [process.execPath, fileURLToPath(new URL('./browser-process.ts', import.meta.url))]
    .map(one => `'${one}'`)
    .join(' ')
  writeFileSync(script, `#!/bin/sh\nexec ${line} "$@"\n`, { mode: 0o755 })
  const lines = () => (existsSync(opened) ? readFileSync(opened, 'utf8').trim().split('\n') : [])
  try {
    await work({ home, env: { BROWSER: script, OPENED: opened }, opened: lines })
    // A browser writes a line when it starts, and one when it ends. It must not write to a directory that is being removed.
    await eventually('every browser has ended', async () => lines().length % 2 === 0)
  } finally {
    await home.close()
  }
}

const contextOf = ({ directory }: CliHome) =>
  JSON.parse(readFileSync(join(directory, '.config/platform/contexts.json'), 'utf8')).contexts['127.0.0.1']
const keyOf = ({ directory }: CliHome) =>
  readFileSync(join(directory, '.local/share/platform/keys/127.0.0.1'), 'utf8').trim()

/** Resolves with the output of a program when it matches. */
function sees(child: ChildProcess, wanted: RegExp): Promise<RegExpExecArray> {
  let text = ''
  return new Promise((resolve, reject) => {
    child.stderr?.on('data', chunk => {
      text += chunk
      const found = wanted.exec(text)
      if (found) resolve(found)
    })
    child.once('exit', code => reject(new Error(`it ended with ${code}, and printed:\n${text}`)))
  })
}
const codeOf = async (child: ChildProcess) => child.exitCode ?? ((await once(child, 'exit'))[0] as number)

suite('in the browser', () => {
  test('login opens the browser, and stores the key of a session', () =>
    atHome(async ({ home, env, opened }) => {
      const { code, stderr } = await home.run(['login', stage.server.http], { env })
      assert.equal(code, 0, stderr)
      assert.match(
        stderr,
        /Opening http:\/\/127\.0\.0\.1:\d+\/auth\/cli\?\S+\nIf no browser opens, visit that address\./,
      )
      assert.match(stderr, /Signed in to \S+ as corp:ada; the current context is 127\.0\.0\.1\.\n/)
      assert.match(stderr, /Teams: builders\nThe session ends in \d+d, or after 12h without use\.\n/)
      assert.doesNotMatch(stderr, /plat_/)
      const { keyType, user, keyName } = contextOf(home)
      assert.deepEqual([keyType, user], ['Login', 'corp:ada'])
      assert.equal(statSync(join(home.directory, '.local/share/platform/keys/127.0.0.1')).mode & 0o777, 0o600)
      await eventually('the page', async () => opened().length === 2)
      const [url = '', page = ''] = opened()
      assert.match(page, /^200 .*You are signed in.*close this window/)
      const { searchParams } = new URL(url)
      for (const name of ['state', 'challenge']) assert.match(searchParams.get(name) ?? '', /^[\w-]{43}$/)
      assert.match(searchParams.get('machine') ?? '', /^[^@]+@[^@]+$/)
      const { spec } = (await stage.ask('GET', `${keys}/${keyName}`)).body
      assert.equal(spec.displayName, searchParams.get('machine')?.slice(0, 64))
    }))

  test('--provider skips the choice, --user-hint names the account, an unknown provider is a usage error', () =>
    atHome(async ({ home, env, opened }) => {
      const said = await home.fails(2, ['login', stage.server.http, '--provider', 'crop'], { env })
      assert.match(said, /unknown provider "crop"; did you mean corp/)
      const words = ['login', stage.server.http, '--provider', 'corp', '--user-hint', 'bob@example.org']
      await home.ok(words, { env: { ...env, ACCOUNT: 'bob' } })
      const { searchParams } = new URL(opened()[0] ?? '')
      assert.deepEqual([searchParams.get('provider'), searchParams.get('hint')], ['corp', 'bob@example.org'])
      assert.equal(await home.ok('whoami -o name'), 'corp:bob\n')
    }))

  test('--no-browser prints the URL; only the callback with the right state is accepted, once; Ctrl-C closes the port', () =>
    atHome(async ({ home, env, opened }) => {
      const child = home.start(['login', stage.server.http, '--no-browser'], { env })
      const [, url = ''] = await sees(child, /Visit (\S+)\n/)
      const port = new URL(url).searchParams.get('port')
      const state = new URL(url).searchParams.get('state')
      const at = (path: string, headers = {}, method = 'GET') =>
        new Promise<number>((resolve, reject) => {
          const call = get(`http://127.0.0.1:${port}${path}`, { headers, method, agent: false }, response => {
            response.resume()
            resolve(response.statusCode ?? 0)
          })
          call.on('error', reject).end()
        })
      const [denied, other] = ['error=access_denied', 'error=server_error']
      const invalid = [`/callback?${denied}`, `/callback?${denied}&state=b`, `/callback?${other}&state=${state}`]
      for (const path of ['/', '/callback', '/callback?code=a&state=b', `/callback/?code=a&state=${state}`, ...invalid])
        assert.equal(await at(path), 404, path)
      assert.equal(await at(`/callback?code=a&state=${state}`, {}, 'POST'), 404)
      assert.equal(await at(`/callback?code=a&state=${state}`, { host: `evil.example:${port}` }), 404)
      assert.deepEqual(opened(), [])
      const ended = codeOf(child)
      child.kill('SIGINT')
      assert.equal(await ended, 130)
      await assert.rejects(at('/'), /ECONNREFUSED/)
      assert.deepEqual(
        readdirSync(home.directory, { recursive: true }).filter(name => `${name}`.endsWith('.lock')),
        [],
      )
    }))

  test('a code of another login is refused, and nothing is stored', () =>
    atHome(async ({ home, env }) => {
      const child = home.start(['login', stage.server.http, '--no-browser'], { env })
      const [, url = ''] = await sees(child, /Visit (\S+)\n/)
      const { searchParams } = new URL(url)
      const ended = codeOf(child)
      const said = sees(child, /the code is unknown, expired or was used already/)
      const callback = `http://127.0.0.1:${searchParams.get('port')}/callback`
      const answer = await fetch(`${callback}?code=stolen&state=${searchParams.get('state')}`)
      assert.equal(answer.status, 400)
      assert.match(await answer.text(), /The sign-in failed/)
      await said
      assert.equal(await ended, 4)
      assert.match(await home.fails(4, 'whoami'), /not signed in/)
    }))

  test('Cancel in the browser ends the login at once, and nothing is stored', () =>
    atHome(async ({ home, env, opened }) => {
      const words = ['login', stage.server.http, '--timeout', '1h']
      const said = await home.fails(4, words, { env: { ...env, DECISION: 'deny' } })
      assert.match(said, /the sign-in was denied in the browser/)
      await eventually('the page', async () => opened().length === 2)
      assert.match(opened()[1] ?? '', /^200 .*The sign-in was cancelled.*close this window/)
      assert.match(await home.fails(4, 'whoami'), /not signed in/)
    }))

  test('after the timeout the message names --device', () =>
    atHome(async ({ home, env }) => {
      const said = await home.fails(4, ['login', stage.server.http, '--no-browser', '--timeout', '1s'], { env })
      assert.match(said, /nobody confirmed the sign-in within 1s.*platform login \S+ --device/)
      for (const time of ['0s', '2h'])
        assert.match(
          await home.fails(2, ['login', stage.server.http, '--timeout', time], { env }),
          /--timeout: .* must be between 1s and 1h/,
        )
    }))

  test('without a usable browser the URL is printed', () =>
    atHome(async ({ home }) => {
      const env = { BROWSER: join(home.directory, 'nowhere'), PATH: '' }
      const words = ['login', stage.server.http, '--timeout', '1s']
      assert.match(await home.fails(4, words, { env }), /Visit http:\/\/127\.0\.0\.1:\d+\/auth\/cli\?/)
    }))

  test('another user does not replace a context without --yes, and the unused session is deleted', () =>
    atHome(async ({ home, env }) => {
      await home.ok(['login', stage.server.http], { env })
      const names = async () =>
        (await stage.ask('GET', keys)).body.items
          .filter(({ spec }: { spec: { user: string } }) => spec.user === 'corp:bob')
          .map(({ metadata }: { metadata: { name: string } }) => metadata.name)
      const earlier = await names()
      const words = ['login', stage.server.http]
      const said = await home.fails(2, words, { env: { ...env, ACCOUNT: 'bob' } })
      assert.match(said, /is for corp:ada at \S+, not corp:bob; choose another name with --context/)
      assert.equal(await home.ok('whoami -o name'), 'corp:ada\n')
      // Only the session of the browser is new.
      assert.equal((await names()).length, earlier.length + 1)
    }))

  test('three logins at once open one tab', () =>
    atHome(async ({ home, env, opened }) => {
      const go = join(home.directory, 'go')
      const begin = () => home.start(['login', stage.server.http], { env: { ...env, WAIT_FOR: go } })
      const first = begin()
      const firstCode = codeOf(first)
      await sees(first, /Opening/)
      const others = [begin(), begin()]
      const codes = others.map(codeOf)
      await Promise.all(others.map(one => sees(one, /waiting for another sign-in to context "127\.0\.0\.1"/)))
      writeFileSync(go, '')
      assert.deepEqual(await Promise.all([firstCode, ...codes]), [0, 0, 0])
      assert.equal(opened().filter(line => line.startsWith('http')).length, 1)
      assert.equal(await home.ok('whoami -o name'), 'corp:ada\n')
    }))

  test('a pipeline without a key fails at once, and the message names --workload', () =>
    atHome(async ({ home, env, opened }) => {
      const said = await home.fails(2, `login ${stage.server.http}`, { env: { ...env, CI: 'true' } })
      assert.match(said, /--workload/)
      assert.deepEqual(opened(), [])
    }))

  test('an access key still works: on standard input and in the environment', () =>
    atHome(async ({ home, env, opened }) => {
      await home.ok(['login', stage.server.http, '--access-key', '-'], { stdin: stage.server.adminKey, env })
      await home.ok(['login', stage.server.http], { env: { ...env, PLATFORM_ACCESS_KEY: stage.server.adminKey } })
      assert.deepEqual(opened(), [])
      const both = ['login', stage.server.http, '--device', '--access-key', '-']
      assert.match(await home.fails(2, both, { env }), /--device cannot be combined with --access-key/)
      const set = { ...env, PLATFORM_ACCESS_KEY: stage.server.adminKey }
      assert.match(await home.fails(2, ['login', stage.server.http, '--device'], { env: set }), /PLATFORM_ACCESS_KEY/)
    }))
})

await withTerminal(() => {
  test('at a terminal, --access-key - prompts for a key without echo', () =>
    atHome(async ({ home, env, opened }) => {
      const terminal = home.terminal(['login', stage.server.http, '--access-key', '-'], { env })
      await terminal.sees(/Access key: $/)
      terminal.type(`${stage.server.adminKey}\r`)
      const { code, text } = await terminal.ended
      assert.equal(code, 0, text)
      assert.equal(text.includes(stage.server.adminKey), false)
      assert.deepEqual(opened(), [])
    }))
})

test('a server without providers says how to sign in with a key', async () => {
  const server = await startServer({ inProcess: true })
  try {
    await atHome(async ({ home, env }) => {
      const said = await home.fails(2, ['login', server.http], { env })
      assert.match(said, /the key is missing: pass it on standard input with --access-key -, or in PLATFORM_ACCESS_KEY/)
      assert.match(said, /no identity provider is configured/)
      for (const flags of ['--device', '--provider corp', '--no-browser'])
        assert.match(
          await home.fails(2, ['login', server.http, ...flags.split(' ')], { env }),
          /no identity provider is configured .*--access-key -/,
        )
      assert.equal(existsSync(join(home.directory, '.config')), false)
    })
  } finally {
    await server.stop()
  }
})

suite('on another device', () => {
  const begin = async (home: CliHome) => {
    const child = home.start(['login', stage.server.http, '--device'])
    const [text, uri = '', code = ''] = await sees(
      child,
      /Visit (\S+) and enter the code ([A-Z]{4}-[A-Z]{4})[\s\S]*yourself\.\n/,
    )
    assert.match(text, /Only enter this code if you started this sign-in yourself\./)
    assert.equal(uri, `${stage.server.http}/auth/device`)
    return { child, code, ended: codeOf(child) }
  }
  const decide = async (code: string, decision: string) => {
    const browser = stage.browser()
    await browser.signIn('ada')
    const page = await browser.open(`/auth/device?user_code=${code}`)
    await browser.submit('/auth/device', { ...page.fields, decision })
  }

  test('an approved code signs in', () =>
    atHome(async ({ home }) => {
      const { child, code, ended } = await begin(home)
      const said = sees(child, /Signed in to \S+ as corp:ada/)
      await decide(code, 'approve')
      await said
      assert.equal(await ended, 0)
      assert.equal(contextOf(home).keyType, 'Login')
      assert.equal(await home.ok('whoami -o name'), 'corp:ada\n')
    }))

  test('a denied code ends the login', () =>
    atHome(async ({ home }) => {
      const { child, code, ended } = await begin(home)
      const said = sees(child, /the sign-in was denied/)
      await decide(code, 'deny')
      await said
      assert.equal(await ended, 4)
      assert.equal(existsSync(join(home.directory, '.config/platform/contexts.json')), false)
    }))
})

suite('sessions', () => {
  test('whoami shows provider and groups, list accesskeys the machine and the type', () =>
    atHome(async ({ home, env }) => {
      await home.ok(['login', stage.server.http], { env })
      const said = await home.ok('whoami')
      assert.match(said, /^Expires: +in \d+d, or after 12h without use$/m)
      assert.match(
        said,
        /^User: +corp:ada\n[\s\S]*Provider: +corp\n[\s\S]*Team: +builders[\s\S]*Groups: +corp:dev, corp:ops\n/,
      )
      const { session } = JSON.parse(await home.ok('whoami -o json'))
      assert.deepEqual(session, { provider: 'corp' })
      const { keyName } = contextOf(home)
      const row = (await home.ok('list accesskeys -o wide')).split('\n').find(line => line.startsWith(keyName)) ?? ''
      assert.match(row, /^\S+ +\S+@\S+ +corp:ada .* session +Login /)
    }))

  test('logout ends the session of the command line, and not that of the browser', () =>
    atHome(async ({ home, env }) => {
      await home.ok(['login', stage.server.http], { env })
      const { keyName } = contextOf(home)
      const key = keyOf(home)
      const { parent } = (await stage.ask('GET', `${keys}/${keyName}`)).body.spec
      assert.match((await home.run('logout')).stderr, /its key is revoked/)
      await assert.rejects(stage.groupsOf(key), /401/)
      assert.equal((await stage.ask('GET', `${keys}/${parent}`)).body.metadata.deletionTimestamp, undefined)
    }))

  test('logout while the server is unreachable warns that the key is not revoked', () =>
    atHome(async ({ home, env }) => {
      await home.ok(['login', stage.server.http], { env })
      const wanted = /^platform: warning: cannot revoke the key: .*connection refused.*\nSigned out of /
      await stage.server.restart(async () => assert.match((await home.run('logout')).stderr, wanted))
    }))

  test('logout --everywhere ends all sessions of the user, and no other key', () =>
    atHome(async ({ home, env }) => {
      const browser = stage.browser()
      await browser.signIn('ada')
      const other = stage.browser()
      await other.signIn('bob')
      await home.ok(['login', stage.server.http], { env })
      const made = (await home.ok('create accesskey pipeline-of-ada')).trim()
      const key = keyOf(home)
      assert.match((await home.run('logout --everywhere')).stderr, /Ended \d+ sessions of corp:ada/)
      await assert.rejects(stage.groupsOf(key), /401/)
      assert.equal(
        (await browser.call('GET', '/auth/session', { headers: { accept: 'application/json' } })).status,
        401,
      )
      assert.equal((await other.call('GET', '/auth/session', { headers: { accept: 'application/json' } })).status, 200)
      assert.ok((await stage.groupsOf(made)).includes('corp:dev'))
      assert.match(await home.fails(4, 'whoami'), /not signed in/)
    }))

  test('offboard does not list sessions, because the server deletes them', () =>
    atHome(async ({ home, env }) => {
      stage.provider.accounts['cem'] = { groups: ['dev'] }
      await home.ok(['login', stage.server.http], { env: { ...env, ACCOUNT: 'cem' } })
      const made = await home.ok('create accesskey pipeline-of-cem')
      assert.match(made, /^plat_/)
      await home.signIn(stage.server)
      const left = await home.ok('offboard corp:cem --yes')
      assert.match(left, /ownedaccesskey +pipeline-of-cem\n/)
      assert.doesNotMatch(left, /login-/)
    }))

  test('enable user lets a person sign in again and revives keys that depend on a sign-in, but no session', () =>
    atHome(async ({ home, env }) => {
      stage.provider.accounts['eli'] = { groups: ['dev'] }
      await home.ok(['login', stage.server.http], { env: { ...env, ACCOUNT: 'eli' } })
      const session = keyOf(home)
      const pipeline = (await home.ok('create accesskey pipeline-of-eli')).trim()
      await home.signIn(stage.server)
      await home.ok('offboard corp:eli --yes')
      await eventually('the session is being deleted', async () => {
        const { body } = await stage.ask('GET', `${keys}?fieldSelector=spec.user=corp:eli`)
        const sessions = body.items.filter((one: { spec: { type: string } }) => one.spec.type === 'Login')
        return sessions.every((one: { metadata: object }) => 'deletionTimestamp' in one.metadata)
      })
      await assert.rejects(stage.groupsOf(pipeline), /401.*disabled/)
      assert.match(
        await home.ok('enable user corp:eli'),
        /enabled\ncorp:eli can sign in again\..*\n.*\npipeline-of-eli +works again, if the identity provider still/,
      )
      assert.ok((await stage.groupsOf(pipeline)).includes('corp:dev'))
      await assert.rejects(stage.groupsOf(session), /401/)
      await home.ok(['login', stage.server.http, '--yes'], { env: { ...env, ACCOUNT: 'eli' } })
    }))

  test('enable user fails if a group of the provider may have more permissions than the caller', () =>
    atHome(async ({ home }) => {
      const rbac = '/apis/rbac.authorization.k8s.io/v1'
      const rules = [{ verbs: ['*'], apiGroups: ['management.platform.sh'], resources: ['users'] }]
      await stage.ask('POST', `${rbac}/clusterroles`, { metadata: { name: 'user-managers' }, rules })
      const bind = (name: string, role: string, subject: object) =>
        stage.ask('POST', `${rbac}/clusterrolebindings`, {
          metadata: { name },
          roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
          subjects: [{ apiGroup: 'rbac.authorization.k8s.io', ...subject }],
        })
      await bind('mia', 'user-managers', { kind: 'User', name: 'mia' })
      await bind('operators', 'platform-admin', { kind: 'Group', name: 'corp:operators' })
      const { spec } = (await stage.ask('POST', keys, { spec: { user: 'mia' } })).body
      await home.signIn(stage.server, spec.key)
      const user = { metadata: { name: 'fay' }, spec: { username: 'corp:fay', disabled: true } }
      assert.equal((await stage.ask('POST', '/apis/management.platform.sh/v1/users', user)).status, 201)
      const said = await home.fails(5, 'enable user corp:fay')
      assert.match(said, /a role has permissions that the user does not have/)
      assert.match(said, /any group that the identity provider may give; ask an administrator\n$/)
    }))

  test('if the session has ended, the message names platform login', () =>
    atHome(async ({ home, env }) => {
      await home.ok(['login', stage.server.http, '--context', 'work'], { env })
      const { contexts } = JSON.parse(readFileSync(join(home.directory, '.config/platform/contexts.json'), 'utf8'))
      await stage.ask('DELETE', `${keys}/${contexts.work.keyName}`)
      const said = await home.fails(4, 'list teams')
      assert.match(said, /access key was deleted: platform login http:\/\/127\.0\.0\.1:\d+ --context work\n/)
      const other = await home.fails(4, 'list teams', {
        env: { PLATFORM_ACCESS_KEY: `plat_${'x'.repeat(40)}`, PLATFORM_SERVER: stage.server.http },
      })
      assert.doesNotMatch(other, /platform login/)
      assert.match(await home.fails(4, 'logout --everywhere'), /platform login/)
    }))
})
