// Random sequences of sign-in, group changes, disabled accounts, keys, sign-out and provider failures, with a clock that jumps.
// Access never exceeds what the provider said `refreshAfter` + 5 s ago, plus the grace while the provider does not answer (D67).
// Server, provider and clock are in this process: only the Date is simulated.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mock } from 'node:test'
import { openBrowser } from '../../sign-in/browser.ts'
import { secretOf } from '../../sign-in/people-stage.ts'
import { loginOf, startProvider, type TestProvider } from '../../sign-in/test-provider.ts'
import { type Server, startServer } from '../../support/server.ts'
import { type Dice, diceOf } from '../seeded-random.ts'

const second = 1000
const [refreshAfter, grace, margin] = [600 * second, 3600 * second, 5 * second]
/** After a failure the server waits before it asks again. */
const retry = 15 * second
const accounts = ['ada', 'bob']
const groups = ['a', 'b', 'c']

type State = { readonly since: number; readonly groups: readonly string[]; readonly isEnabled: boolean }
type Credential = {
  readonly account: string
  readonly secret: string
  readonly type: 'session' | 'key'
  readonly cookies?: ReturnType<typeof openBrowser>
  /** The sign-in it depends on, by the number of the session. */
  readonly created: number
  hasEnded: boolean
}

export type SignInRun = {
  readonly steps: number
  readonly observed: number
  readonly accepted: number
  readonly violations: readonly string[]
}

export async function proveSignIn(seed: string, steps: number): Promise<SignInRun> {
  mock.timers.enable({ apis: ['Date'], now: Date.now() })
  const provider = await startProvider()
  const directory = mkdtempSync(join(tmpdir(), 'platform-model-'))
  const file = join(directory, 'auth.yaml')
  const secretFile = join(directory, 'secret')
  writeFileSync(secretFile, provider.secret)
  const login = [loginOf(provider, { clientSecretEnv: undefined, clientSecretFile: secretFile })]
  writeFileSync(file, JSON.stringify({ apiVersion: 'config.platform.sh/v1', kind: 'AuthConfig', login }))
  const server = await startServer({
    storage: 'memory',
    inProcess: true,
    args: ['--auth-config', file, '--limits-auth-total', '1000000', '--limits-unknown-keys', '0'],
  })
  try {
    await provider.configure({ redirectUris: [`${server.http}/auth/callback/corp`] })
    return await new World(server, provider, diceOf(seed)).run(steps)
  } finally {
    mock.timers.reset()
    await server.stop()
    await provider.stop()
    rmSync(directory, { recursive: true, force: true })
  }
}

class World {
  readonly #states = new Map<string, State[]>()
  readonly #credentials: Credential[] = []
  readonly #violations: string[] = []
  /** When the provider last did not answer. */
  #lastDown = Number.NEGATIVE_INFINITY
  #isDown = false
  #observed = 0
  #accepted = 0
  readonly #server: Server
  readonly #provider: TestProvider
  readonly #dice: Dice

  constructor(server: Server, provider: TestProvider, dice: Dice) {
    this.#server = server
    this.#provider = provider
    this.#dice = dice
    for (const account of accounts) this.#change(account, { groups, isEnabled: true })
  }

  async run(steps: number): Promise<SignInRun> {
    for (let step = 0; step < steps && this.#violations.length === 0; step++) {
      const name = await this.#step()
      if (this.#credentials.length > 10) this.#credentials.shift()
      for (const credential of this.#credentials) await this.#observe(credential, `step ${step} (${name})`)
    }
    return { steps, observed: this.#observed, accepted: this.#accepted, violations: this.#violations }
  }

  async #step(): Promise<string> {
    const dice = this.#dice
    const account = this.#pick(accounts)
    const choice = dice(100)
    if (choice < 30) {
      const jump = this.#pick([1, 20, 120, 300, 601, 660, 1800, 4000, 7200]) * second
      mock.timers.tick(jump)
      if (this.#isDown) this.#lastDown = Date.now()
      return `${jump / second} s pass`
    }
    if (choice < 50) {
      const left = groups.filter(() => dice(2) === 0)
      this.#change(account, { groups: left })
      return `${account} has the groups ${left}`
    }
    if (choice < 58) {
      const isEnabled = dice(3) > 0
      this.#change(account, { isEnabled })
      return `${account} is ${isEnabled ? 'enabled' : 'disabled'}`
    }
    if (choice < 68) {
      this.#isDown = !this.#isDown
      this.#lastDown = Date.now()
      this.#provider.faults = this.#isDown ? { status: 503 } : {}
      return `the provider is ${this.#isDown ? 'down' : 'up'}`
    }
    if (choice < 82) return this.#signIn(account)
    if (choice < 92) return this.#createKey()
    return this.#signOut()
  }

  #pick<T>(list: readonly T[]): T {
    return list[this.#dice(list.length)] as T
  }

  async #signIn(account: string): Promise<string> {
    if (this.#isDown || !this.#now(account).isEnabled) return 'no sign-in'
    const browser = openBrowser(this.#server.http)
    const page = await browser.signIn(account)
    const secret = secretOf(browser)
    if (page.status !== 200 || !secret)
      this.#violations.push(`${account} could not sign in: ${page.status} ${page.text}`)
    else
      this.#credentials.push({
        account,
        secret,
        type: 'session',
        cookies: browser,
        created: Date.now(),
        hasEnded: false,
      })
    return `${account} signs in`
  }

  async #createKey(): Promise<string> {
    const from = this.#credentials.length ? this.#pick(this.#credentials) : undefined
    if (!from) return 'no key'
    const { status, body } = await this.#ask(from.secret, 'POST', '/apis/management.platform.sh/v1/ownedaccesskeys', {
      spec: {},
    })
    if (status === 201)
      this.#credentials.push({
        account: from.account,
        secret: body.spec.key,
        type: 'key',
        created: Date.now(),
        hasEnded: false,
      })
    return `a key of ${from.account}: ${status}`
  }

  async #signOut(): Promise<string> {
    const session = this.#credentials.find(({ type, hasEnded }) => type === 'session' && !hasEnded)
    if (!session?.cookies) return 'no sign-out'
    await session.cookies.submit('/auth/logout', {})
    session.hasEnded = true
    return `${session.account} signs out`
  }

  async #observe(credential: Credential, when: string): Promise<void> {
    this.#observed++
    if (this.#isDown) this.#lastDown = Date.now()
    const now = Date.now()
    const { status, body } = await this.#ask(
      credential.secret,
      'POST',
      '/apis/authentication.k8s.io/v1/selfsubjectreviews',
      {},
    )
    const { account, type, hasEnded } = credential
    const about = `${when}: the ${type} of ${account}`
    const isShaky = now - this.#lastDown <= retry
    const oldest = now - refreshAfter - margin - (isShaky ? grace : 0)
    const states =
      this.#states
        .get(account)
        ?.filter((_, index, all) => (all[index + 1]?.since ?? Number.POSITIVE_INFINITY) >= oldest) ?? []
    if (status !== 201) {
      if (status !== 401) this.#violations.push(`${about} got ${status}`)
      // Nothing happened that ends it: the account was enabled all the time, and the provider answers.
      const isSteady = states.every(({ isEnabled }) => isEnabled) && this.#wasEnabledSince(credential) && !isShaky
      const isYoung = now - credential.created < 11 * 3600 * second
      if (isSteady && isYoung && !hasEnded && type === 'session' && this.#wasUpSince(credential))
        this.#violations.push(`${about} is rejected without a reason: ${body?.message}`)
      return
    }
    this.#accepted++
    if (hasEnded) this.#violations.push(`${about} works after sign-out`)
    if (!states.some(({ isEnabled }) => isEnabled)) this.#violations.push(`${about} works, but the account is disabled`)
    const seen: string[] = body.status.userInfo.groups.filter((group: string) => group.startsWith('corp:'))
    for (const group of seen)
      if (!states.some(state => state.isEnabled && state.groups.includes(group.slice('corp:'.length))))
        this.#violations.push(`${about} has the group ${group}, which the provider took away`)
    for (const group of groups)
      if (!isShaky && states.every(state => state.groups.includes(group)) && !seen.includes(`corp:${group}`))
        this.#violations.push(`${about} lacks the group ${group}`)
  }

  #wasUpSince({ created }: Credential): boolean {
    return this.#lastDown < created
  }

  #wasEnabledSince({ account, created }: Credential): boolean {
    const all = this.#states.get(account) ?? []
    return all.every(
      ({ isEnabled }, index) => isEnabled || (all[index + 1]?.since ?? Number.POSITIVE_INFINITY) < created,
    )
  }

  #now(account: string): State {
    return this.#states.get(account)?.at(-1) ?? { since: 0, groups: [], isEnabled: true }
  }

  #change(account: string, change: Partial<State>): void {
    const next = { ...this.#now(account), ...change, since: Date.now() }
    this.#states.set(account, [...(this.#states.get(account) ?? []), next])
    this.#provider.accounts[account] = { groups: next.groups, disabled: !next.isEnabled }
  }

  async #ask(key: string, method: string, path: string, body: unknown) {
    const response = await fetch(`${this.#server.http}/kubernetes/management${path}`, {
      method,
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    })
    // biome-ignore lint/suspicious/noExplicitAny: as in other tests, responses are looked at as they come
    return { status: response.status, body: (await response.json()) as any }
  }
}
