// Starts an installed Dex or Keycloak with a generated configuration, for tests of sign-in.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { Page } from 'playwright-core'

export type Registration = {
  /** The port of the provider. */
  readonly port: number
  /** The URL of the server. */
  readonly server: string
  readonly secret: string
}

export type InstalledProvider = {
  /** Fills in the pages of the provider. */
  signIn(page: Page): Promise<void>
  stop(): Promise<void>
}

/** A provider that can be installed. Its name is that of its entry in docs/SIGN-IN.md. */
export type Installable = {
  readonly name: string
  /** The environment variable with the installation. */
  readonly variable: string
  readonly issuer: (port: number) => string
  /** Changes of the entry in docs/SIGN-IN.md. */
  readonly login: object
  readonly username: string
  readonly group: string
  /** Takes the group from the person. Absent: the provider cannot. */
  readonly removeGroup?: (port: number) => Promise<void>
  readonly start: (installation: string, registration: Registration) => Promise<InstalledProvider>
}

const callback = (name: string, server: string) => `${server}/auth/callback/${name}`

/** The mock connector has one person, in the group authors. Dex shows no page, because there is no other connector. */
export const dexConfig = ({ port, server, secret }: Registration) => ({
  issuer: dex.issuer(port),
  storage: { type: 'memory' },
  web: { http: `127.0.0.1:${port}` },
  oauth2: { skipApprovalScreen: true },
  staticClients: [{ id: 'platform', name: 'Platform', secret, redirectURIs: [callback('dex', server)] }],
  connectors: [{ type: 'mockCallback', id: 'mock', name: 'Mock' }],
})

export const dex: Installable = {
  name: 'dex',
  variable: 'DEX',
  issuer: port => `http://127.0.0.1:${port}/dex`,
  // The mock connector gives no preferred_username.
  login: { claimMappings: { username: { claim: 'email' }, groups: { claim: 'groups' } } },
  username: 'dex:kilgore@kilgore.trout',
  group: 'dex:authors',
  async start(binary, registration) {
    const directory = mkdtempSync(join(tmpdir(), 'platform-dex-'))
    const file = join(directory, 'config.yaml')
    writeFileSync(file, JSON.stringify(dexConfig(registration)))
    const stop = await startProgram(binary, ['serve', file], {}, dex.issuer(registration.port), directory)
    return { signIn: async () => {}, stop }
  },
}

const [realm, account, password, groupName] = ['corp', 'ada', 'ada-password', 'dev']
const [admin, adminPassword] = ['admin', 'admin-password']

export const keycloakRealm = ({ server, secret }: Omit<Registration, 'port'>) => ({
  realm,
  enabled: true,
  groups: [{ name: groupName }],
  users: [
    {
      username: account,
      enabled: true,
      email: 'ada@example.org',
      emailVerified: true,
      firstName: 'Ada',
      lastName: 'Lovelace',
      credentials: [{ type: 'password', value: password, temporary: false }],
      groups: [`/${groupName}`],
      // An imported person has no default roles, and offline_access needs this one.
      realmRoles: [`default-roles-${realm}`, 'offline_access'],
    },
  ],
  clients: [
    {
      clientId: 'platform',
      enabled: true,
      protocol: 'openid-connect',
      publicClient: false,
      secret,
      standardFlowEnabled: true,
      redirectUris: [callback('keycloak', server)],
      attributes: {
        'pkce.code.challenge.method': 'S256',
        'post.logout.redirect.uris': `${server}/auth/login`,
        'backchannel.logout.url': `${server}/auth/backchannel-logout/keycloak`,
      },
      protocolMappers: [
        {
          name: 'groups',
          protocol: 'openid-connect',
          protocolMapper: 'oidc-group-membership-mapper',
          config: { 'claim.name': 'groups', 'full.path': 'false', 'id.token.claim': 'true' },
        },
      ],
    },
  ],
})

export const keycloak: Installable = {
  name: 'keycloak',
  variable: 'KEYCLOAK',
  issuer: port => `http://127.0.0.1:${port}/realms/${realm}`,
  login: {},
  username: `keycloak:${account}`,
  group: `keycloak:${groupName}`,
  removeGroup: port => removeGroup(`http://127.0.0.1:${port}`),
  async start(installation, registration) {
    // A copy, because Keycloak writes to its own directory.
    const home = mkdtempSync(join(tmpdir(), 'platform-keycloak-'))
    cpSync(installation, home, { recursive: true })
    mkdirSync(join(home, 'data/import'), { recursive: true })
    writeFileSync(join(home, 'data/import/realm.json'), JSON.stringify(keycloakRealm(registration)))
    const { port } = registration
    const flags = ['start-dev', '--import-realm', `--http-port=${port}`, '--http-host=127.0.0.1']
    // The names of version 26, and of earlier ones.
    const env = {
      KC_BOOTSTRAP_ADMIN_USERNAME: admin,
      KC_BOOTSTRAP_ADMIN_PASSWORD: adminPassword,
      KEYCLOAK_ADMIN: admin,
      KEYCLOAK_ADMIN_PASSWORD: adminPassword,
    }
    const stop = await startProgram(join(home, 'bin/kc.sh'), flags, env, keycloak.issuer(port), home)
    return {
      async signIn(page) {
        await page.fill('#username', account)
        await page.fill('#password', password)
        await page.click('#kc-login')
      },
      stop,
    }
  },
}

async function removeGroup(server: string): Promise<void> {
  const form = { grant_type: 'password', client_id: 'admin-cli', username: admin, password: adminPassword }
  const login = await fetch(`${server}/realms/master/protocol/openid-connect/token`, {
    method: 'POST',
    body: new URLSearchParams(form),
  })
  const { access_token: token } = (await login.json()) as { access_token: string }
  const ask = async (path: string, method = 'GET') => {
    const headers = { Authorization: `Bearer ${token}` }
    const response = await fetch(`${server}/admin/realms/${realm}/users${path}`, { method, headers })
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
    return response
  }
  const first = async (path: string) => ((await (await ask(path)).json()) as { id: string }[])[0]?.id
  const person = await first(`?username=${account}&exact=true`)
  await ask(`/${person}/groups/${await first(`/${person}/groups`)}`, 'DELETE')
}

const within = 300_000

/** Resolves when the issuer answers, with a function that ends the program and removes its directory. */
async function startProgram(
  program: string,
  args: readonly string[],
  env: { readonly [name: string]: string },
  issuer: string,
  directory: string,
): Promise<() => Promise<void>> {
  // A group of its own, because kc.sh starts Java.
  const child = spawn(program, args, {
    detached: true,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let printed = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', chunk => {
      printed += chunk
    })
  const failed = once(child, 'error').then(([error]) => error as Error)
  const leave = () => {
    end(child, 'SIGKILL')
    rmSync(directory, { recursive: true, force: true })
  }
  process.once('exit', leave)
  const isReady = async () =>
    fetch(`${issuer}/.well-known/openid-configuration`).then(
      ({ ok }) => ok,
      () => false,
    )
  for (const last = performance.now() + within; !(await isReady()); await Promise.race([setTimeout(200), failed])) {
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null && performance.now() < last)
      continue
    leave()
    throw new Error(`${program} did not start, and printed:\n${printed}`)
  }
  return async () => {
    const exited = once(child, 'exit')
    end(child, 'SIGTERM')
    const timer = globalThis.setTimeout(() => end(child, 'SIGKILL'), 20_000)
    if (child.exitCode === null && child.signalCode === null) await exited
    clearTimeout(timer)
    process.off('exit', leave)
    rmSync(directory, { recursive: true, force: true })
  }
}

function end({ pid, exitCode, signalCode }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid !== undefined && exitCode === null && signalCode === null) process.kill(-pid, signal)
}
