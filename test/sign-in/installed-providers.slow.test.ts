// Sign-in with an installed Dex (DEX=FILE of the program) or Keycloak (KEYCLOAK=DIRECTORY with bin/kc.sh), and a real browser.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { type Browser, chromium, type Page } from 'playwright-core'
import { parse } from 'yaml'
import { loadAuthConfig } from '../../src/auth/jwt/auth-config.ts'
import { findChromium } from '../support/chromium.ts'
import { closeAll } from '../support/close-all.ts'
import { blocksOf, readDocument } from '../support/docs.ts'
import { notRun } from '../support/missing-tool.ts'
import { freePort } from '../support/ports.ts'
import { type Server, startServer } from '../support/server.ts'
import { eventually } from '../support/wire.ts'
import {
  dex,
  dexConfig,
  type Installable,
  type InstalledProvider,
  keycloak,
  keycloakRealm,
} from './installed-providers.ts'
import { self } from './people-stage.ts'

const secret = 'a-client-secret'

/** The entry of docs/SIGN-IN.md, for a provider on this machine. */
function authConfig({ name, issuer, login }: Installable, port: number): string {
  const examples = blocksOf(readDocument('docs/SIGN-IN.md'))
    .filter(({ how }) => how === 'yaml')
    .map(({ text }) => parse(text))
  const [entry] = examples.flatMap(({ login: entries = [] }) => entries).filter(one => one.name === name)
  assert.ok(entry, name)
  const local = { issuer: { url: issuer(port) }, lifetimes: { refreshAfter: '1s' }, ...login }
  return JSON.stringify({ ...examples[0], login: [{ ...entry, ...local }] })
}

test('the entries of the documentation are valid for providers on this machine', () => {
  for (const one of [dex, keycloak]) {
    const config = loadAuthConfig(Buffer.from(authConfig(one, 5556)), () => ({ problem: 'no files here' }), {
      CORP_CLIENT_SECRET: secret,
    })
    assert.deepEqual(config.problems, [])
    assert.equal(config.logins[0]?.url, one.issuer(5556))
    assert.equal(config.logins[0]?.clientID, 'platform')
  }
})

test('the generated configurations register the server, its secret and its groups', () => {
  const registration = { port: 5556, server: 'http://127.0.0.1:8080', secret }
  const { issuer, web, staticClients, connectors } = dexConfig(registration)
  assert.deepEqual([issuer, web.http], ['http://127.0.0.1:5556/dex', '127.0.0.1:5556'])
  assert.deepEqual(staticClients, [
    { id: 'platform', name: 'Platform', secret, redirectURIs: ['http://127.0.0.1:8080/auth/callback/dex'] },
  ])
  assert.equal(connectors.length, 1)
  const { users, groups, clients } = keycloakRealm(registration)
  assert.deepEqual(
    users[0]?.groups,
    groups.map(({ name }) => `/${name}`),
  )
  const [client] = clients
  assert.deepEqual([client?.clientId, client?.secret], ['platform', secret])
  assert.deepEqual(client?.redirectUris, ['http://127.0.0.1:8080/auth/callback/keycloak'])
  assert.equal(client?.protocolMappers[0]?.config['claim.name'], 'groups')
})

for (const one of [dex, keycloak]) {
  const installation = process.env[one.variable]
  if (installation) await testProvider(one, installation)
}

async function testProvider(installable: Installable, installation: string): Promise<void> {
  const found = await findChromium()
  if (!found) return notRun('Chromium')
  suite(`sign-in with an installed ${installable.name}`, () => {
    const directory = mkdtempSync(join(tmpdir(), 'platform-installed-'))
    let provider: InstalledProvider
    let server: Server
    let browser: Browser
    let page: Page
    let port: number
    before(async () => {
      port = await freePort()
      const plain = await freePort()
      const file = join(directory, 'auth.yaml')
      writeFileSync(file, authConfig(installable, port))
      provider = await installable.start(installation, { port, server: `http://127.0.0.1:${plain}`, secret })
      server = await startServer({
        args: ['--http', `127.0.0.1:${plain}`, '--auth-config', file],
        begin: { env: { CORP_CLIENT_SECRET: secret } },
      })
      browser = await chromium.launch({
        executablePath: found.executablePath,
        env: { ...process.env, ...found.env } as { [name: string]: string },
        args: ['--no-sandbox'],
      })
      page = await browser.newPage()
    })
    after(() =>
      closeAll(
        () => browser?.close(),
        () => server?.stop(),
        () => provider?.stop(),
        () => rmSync(directory, { recursive: true, force: true }),
      ),
    )

    let key = ''
    const review = () => server.request('POST', self, { body: {}, key })
    const groups = async () => (await review()).body.status.userInfo.groups as string[]

    test('a person signs in, and has the groups of the provider', async () => {
      await page.goto(`${server.http}/auth/login`)
      await page.click('text=Sign in with')
      await provider.signIn(page)
      await page.waitForURL('**/auth/session')
      const cookies = await page.context().cookies(server.http)
      key = decodeURIComponent(cookies.find(({ name }) => /^__Host-platform-[0-9a-f]{12}$/.test(name))?.value ?? '')
      assert.equal((await review()).body.status.userInfo.username, installable.username)
      assert.ok((await groups()).includes(installable.group))
    })

    test('the server refreshes the session', async () => {
      const success = new RegExp(
        `^platform_session_refreshes_total\\{provider="${installable.name}",result="success"\\} [1-9]`,
        'm',
      )
      await eventually('a refresh', async () => {
        await review()
        return success.test(await fetch(`${server.http}/metrics`, { headers: bearer(server.adminKey) }).then(textOf))
      })
      assert.ok((await groups()).includes(installable.group))
    })

    const { removeGroup } = installable
    if (removeGroup)
      test('a group that the provider takes away is lost here', async () => {
        await removeGroup(port)
        await eventually('the group is lost', async () => !(await groups()).includes(installable.group))
      })

    test('sign-out ends the session', async () => {
      await page.goto(`${server.http}/auth/session`)
      await page.click('button:has-text("Sign out") >> nth=0')
      await page.waitForURL('**/auth/login')
      assert.equal((await review()).status, 401)
      await page.goto(`${server.http}/auth/session`)
      await page.waitForURL('**/auth/login')
    })
  })
}

const bearer = (key: string) => ({ Authorization: `Bearer ${key}` })
const textOf = (response: Response) => response.text()
