// A server with an auth.yaml and issuers, for tests of sign-in.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { closeAll } from '../support/close-all.ts'
import type { Answer, RequestOptions } from '../support/request.ts'
import { type Server, startServer } from '../support/server.ts'
import { audience, type TestIssuer } from './test-issuer.ts'

export const self = '/apis/authentication.k8s.io/v1/selfsubjectreviews'

/** The entry of an issuer in auth.yaml. `over` overrides fields of the entry. */
export const entryOf = (issuer: TestIssuer, name = 'ci', over: object = {}) => ({
  name,
  issuer: { url: issuer.url, certificateAuthority: issuer.ca, audiences: [audience], audienceMatchPolicy: 'MatchAny' },
  claimMappings: { username: { claim: 'sub' }, groups: { claim: 'groups' } },
  ...over,
})

export type SignInStage = {
  readonly server: Server
  readonly file: string
  /** Replaces auth.yaml: entries of `jwt`, or the text of the file. */
  write(jwt: readonly object[] | string): void
  ask(
    token: string,
    method?: string,
    path?: string,
    body?: unknown,
    headers?: RequestOptions['headers'],
  ): Promise<Answer>
  /** The identity that the server sees; fails with the reason if the token is rejected. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came, and fail where it is something else
  whoami(token: string): Promise<any>
  /** The status and the message for a token. */
  outcome(token: string): Promise<string>
  close(): Promise<void>
}

const textOf = (jwt: readonly object[]) =>
  JSON.stringify({ apiVersion: 'config.platform.sh/v1', kind: 'AuthConfig', jwt }, undefined, 2)

export async function openSignIn(jwt: readonly object[], args: readonly string[] = []): Promise<SignInStage> {
  const directory = mkdtempSync(join(tmpdir(), 'platform-sign-in-'))
  const file = join(directory, 'auth.yaml')
  const write = (next: readonly object[] | string) =>
    writeFileSync(file, typeof next === 'string' ? next : textOf(next))
  write(jwt)
  const server = await startServer({
    storage: 'memory',
    args: ['--auth-config', file, '--limits-unknown-keys', '0', ...args],
  })
  const ask: SignInStage['ask'] = (
    key,
    method = 'POST',
    path = self,
    body = method === 'POST' ? {} : undefined,
    headers,
  ) => server.request(method, path, { key, ...(body === undefined ? {} : { body }), ...(headers ? { headers } : {}) })
  return {
    server,
    file,
    write,
    ask,
    async whoami(token) {
      const { status, body, text } = await ask(token)
      if (status !== 201) throw new Error(`${status}: ${text}`)
      return body.status.userInfo
    },
    async outcome(token) {
      const { status, body, text } = await ask(token)
      return status === 201 ? body.status.userInfo.username : `${status} ${body?.message ?? text}`
    },
    close: () => closeAll(server.stop, async () => rmSync(directory, { recursive: true, force: true })),
  }
}
