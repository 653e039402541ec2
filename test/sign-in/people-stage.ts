// A server with an identity provider, for tests of people who sign in.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { closeAll } from '../support/close-all.ts'
import type { Answer } from '../support/request.ts'
import { type Server, startServer } from '../support/server.ts'
import { type Browser, openBrowser } from './browser.ts'
import { loginOf, startProvider, type TestProvider } from './test-provider.ts'

export type PeopleStage = {
  readonly server: Server
  readonly provider: TestProvider
  browser(): Browser
  /** Writes auth.yaml again. */
  write(login: readonly object[]): void
  /** A request with a key; default: the administrator's. */
  ask(method: string, path: string, body?: unknown, key?: string): Promise<Answer>
  /** The names of the groups that the server sees for a key; fails if it is rejected. */
  groupsOf(key: string): Promise<readonly string[]>
  close(): Promise<void>
}

export const keys = '/apis/management.platform.sh/v1/ownedaccesskeys'
export const teams = '/apis/management.platform.sh/v1/teams'
export const self = '/apis/authentication.k8s.io/v1/selfsubjectreviews'

export async function openPeople(
  options: { readonly login?: object; readonly args?: readonly string[]; readonly inProcess?: boolean } = {},
): Promise<PeopleStage> {
  const provider = await startProvider()
  provider.accounts['ada'] = { groups: ['dev', 'ops'], email: 'ada@example.org', name: 'Ada Lovelace' }
  provider.accounts['bob'] = { groups: ['dev'], email: 'bob@example.org' }
  const directory = mkdtempSync(join(tmpdir(), 'platform-people-'))
  const file = join(directory, 'auth.yaml')
  const write = (login: readonly object[]) =>
    writeFileSync(file, JSON.stringify({ apiVersion: 'config.platform.sh/v1', kind: 'AuthConfig', login }))
  const secretFile = join(directory, 'client-secret')
  writeFileSync(secretFile, provider.secret)
  write([loginOf(provider, { clientSecretEnv: undefined, clientSecretFile: secretFile, ...options.login })])
  const server = await startServer({
    ...(options.inProcess ? { inProcess: true } : {}),
    args: ['--auth-config', file, '--limits-unknown-keys', '0', ...(options.args ?? [])],
  })
  await provider.configure({
    redirectUris: [`${server.http}/auth/callback/corp`, `${server.https}/auth/callback/corp`],
    backchannelLogoutUri: `${server.http}/auth/backchannel-logout/corp`,
    postLogoutRedirectUris: [`${server.http}/auth/login`],
  })
  const ask: PeopleStage['ask'] = (method, path, body, key) =>
    server.request(method, path, { ...(body === undefined ? {} : { body }), ...(key === undefined ? {} : { key }) })
  return {
    server,
    provider,
    browser: () => openBrowser(server.http),
    write,
    ask,
    async groupsOf(key) {
      const { status, body, text } = await ask('POST', self, {}, key)
      if (status !== 201) throw new Error(`${status}: ${text}`)
      return body.status.userInfo.groups
    },
    close: () => closeAll(server.stop, provider.stop, async () => rmSync(directory, { recursive: true, force: true })),
  }
}

/** The session key of a browser. */
export function secretOf(browser: Browser): string {
  const [, value = ''] =
    Object.entries(browser.cookies()).find(([name]) => /^__Host-platform-[0-9a-f]{12}$/.test(name)) ?? []
  return decodeURIComponent(value)
}
