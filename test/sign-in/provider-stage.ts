// The providers of an auth.yaml in this process, for tests of the client of a provider.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import type { HttpTimes } from '../../src/apiserver/issuer-http.ts'
import { openSignIn } from '../../src/apiserver/sign-in.ts'
import type { AuthorizationRequest, Provider, SignedIn } from '../../src/auth/oidc/provider.ts'
import { ProviderError } from '../../src/auth/oidc/provider-error.ts'
import { openMetrics } from '../../src/serving/metrics.ts'
import { eventually } from '../support/wire.ts'
import { signInAt } from './sign-in-at.ts'
import type { TestProvider } from './test-provider.ts'

export const redirectUri = 'http://127.0.0.1/auth/callback/corp'

const random = () => randomBytes(32).toString('base64url')
const newRequest = (): AuthorizationRequest => ({
  redirectUri,
  state: random(),
  nonce: random(),
  codeVerifier: random(),
})

export type ProviderStage = {
  /** Milliseconds that the clock of the server is ahead. */
  skew: number
  readonly provider: Provider
  /** Everything that was logged. */
  log(): string
  /** Signs in up to the callback. */
  begin(
    account?: string,
    provider?: Provider,
  ): Promise<{ readonly callback: URL; readonly request: AuthorizationRequest }>
  signIn(account?: string): Promise<SignedIn>
  /** Replaces auth.yaml, and waits for the reload or its failure. */
  use(login: readonly object[] | string, result?: string): Promise<void>
  stop(): void
}

export async function openProviderStage(
  at: TestProvider,
  login: readonly object[],
  times?: HttpTimes,
): Promise<ProviderStage> {
  const directory = mkdtempSync(join(tmpdir(), 'platform-providers-'))
  const file = join(directory, 'auth.yaml')
  const write = (next: readonly object[] | string) =>
    writeFileSync(
      file,
      typeof next === 'string'
        ? next
        : JSON.stringify({ apiVersion: 'config.platform.sh/v1', kind: 'AuthConfig', login: next }),
    )
  write(login)
  let logged = ''
  const sink = {
    write(line: string) {
      logged += line
    },
  }
  const signIn = openSignIn({
    file,
    metrics: openMetrics(),
    log: pino({}, sink),
    env: { CORP_SECRET: at.secret, WRONG: 'wrong' },
    now: () => Date.now() + stage.skew,
    ...(times ? { times } : {}),
  })
  const stage: ProviderStage = {
    skew: 0,
    get provider() {
      const found = signIn.providers.get('corp')
      assert.ok(found)
      return found
    },
    log: () => logged,
    async begin(account = 'ada', provider = stage.provider) {
      const request = newRequest()
      return { request, callback: await signInAt(await provider.authorizationUrl(request), account) }
    },
    async signIn(account) {
      const { callback, request } = await stage.begin(account)
      return stage.provider.exchange(callback, request)
    },
    async use(next, result = 'auth config reloaded') {
      const count = () => logged.split(result).length
      const earlier = count()
      write(next)
      await eventually(result, async () => count() > earlier)
    },
    stop() {
      signIn.stop()
      rmSync(directory, { recursive: true, force: true })
    },
  }
  return stage
}

/** The code and the message of a failure. Fails if there is none, or if the message contains one of the secrets. */
export async function failureOf(
  work: Promise<unknown>,
  secrets: readonly (string | undefined)[] = [],
): Promise<string> {
  const error = await work.then(
    () => assert.fail('expected a ProviderError'),
    (reason: unknown) => reason,
  )
  if (!(error instanceof ProviderError)) throw error
  for (const secret of secrets) if (secret) assert.ok(!error.message.includes(secret), 'a message contains a secret')
  assert.doesNotMatch(error.message, /eyJ|[\w-]{40,}/, 'a message contains a token')
  return `${error.code}: ${error.message}`
}
