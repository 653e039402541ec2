// Steps of sign-in: people sign in and out, the provider changes their groups, and machines get tokens and exchange them.

import { type HttpRequest, valuesOf } from '../../support/direct-http.ts'
import { isInPool } from './actor.ts'
import type { Stage } from './generator-context.ts'
import type { Known } from './model.ts'
import { kinds } from './objects.ts'
import type { Prover } from './prover.ts'
import type { Machine } from './sign-ins.ts'
import type { Change, SignInStep } from './step.ts'
import { administrator, agentTokens, names, otherTokens } from './universe.ts'
import { Violation } from './violation.ts'

export function signInStep(stage: Stage): SignInStep | undefined {
  const { chance, enabled } = stage
  const people = enabled.has('sessions') || enabled.has('users')
  return chance.weighted<(stage: Stage) => SignInStep | undefined>([
    [people ? 8 : 0, signIn],
    [people ? 6 : 0, changeGroups],
    [people ? 4 : 0, switchAccount],
    [people ? 2 : 0, switchProvider],
    [people ? 2 : 0, signOut],
    [people ? 1 : 0, endSessions],
    [enabled.has('machines') ? 5 : 0, issue],
    [enabled.has('machines') ? 4 : 0, exchange],
    [enabled.has('clusters') ? 4 : 0, nameAgent],
    [enabled.has('clusters') ? 4 : 0, giveAgentToken],
    [enabled.has('clusters') ? 2 : 0, exchangeAgentToken],
    // The list must not be empty.
    [1, () => undefined],
  ])(stage)
}

/** Live sessions and tokens, because each is checked after every change. */
const [mostSessions, mostTokens] = [5, 4]
const accountGroups = ['dev', 'ops']
/** Seconds after which the server asks the provider again. */
const refreshes = 700

/** The attackers have keys of these users, and mostly their accounts. Each account has groups and is enabled. */
export function openAccounts({ prover, chance, attackers, prepared }: Stage): void {
  // An account that can sign in as another user only after a link.
  prover.server.provider.accounts['rex'] = { groups: [], isEnabled: true }
  if (prepared.has('users')) prover.accounts.add('rex')
  for (const account of names.accounts) {
    prover.server.provider.accounts[account] = { groups: chance.some(accountGroups, 2), isEnabled: true }
    // Worlds of sessions decide themselves.
    if (attackers.includes(`corp:${account}`) && !prepared.has('sessions') && chance.is(0.8))
      prover.accounts.add(account)
  }
}

/** `whose`: the account; absent: any. */
export function signIn({ chance, prover }: Stage, whose?: string): SignInStep | undefined {
  const { credentials, signIns, accounts, server } = prover
  const sessions = [...credentials.secrets.keys()].filter(one => {
    const key = credentials.of(one)?.key
    return key !== undefined && signIns.isSession(key)
  })
  if (sessions.length >= mostSessions) return undefined
  const own = [...accounts].filter(one => one !== 'rex' || signIns.accountOf(one)?.isLinkable === false)
  const account = whose ?? chance.pick(own.length && chance.is(0.7) ? own : names.accounts)
  // With auth.requireUsers, the new User makes the existing keys of the person valid.
  const isExpected = !server.requiresUsers || signIns.userOf(signIns.usernameOf(account) ?? '') !== undefined
  return {
    what: `sign-in of account ${account}`,
    danger: 'sessions',
    byAttackers: accounts.has(account) && isExpected,
    async run() {
      const begun = await ask(prover, { method: 'GET', url: '/auth/login/corp' })
      const [location = ''] = valuesOf(begun, 'Location')
      if (!location) return undefined
      const { query, grant } = server.provider.authorize(location, account)
      const cookie = cookiesOf(begun).join('; ')
      const ended = await ask(prover, { method: 'GET', url: `/auth/callback/corp?${query}`, cookie })
      const secret = sessionIn(prover, cookiesOf(ended))
      return changes => {
        const key = newKey(changes)
        if (!key || !secret) return
        signIns.signedIn(key, grant, changes)
        credentials.learn(secret, key, 0)
        if (accounts.has(account)) keep(prover, secret)
      }
    },
  }
}

const outside = (what: string, change: () => void): SignInStep => ({
  what,
  byAttackers: false,
  run: async () => void change(),
})

/** The same, and sometimes so much later that the server asks the provider again. */
function outsideAndLater({ chance, prover }: Stage, what: string, change: () => void): SignInStep {
  if (chance.is(0.6)) return outside(what, change)
  const { server, credentials } = prover
  return {
    ...outside(`${what}, and the clock moves by ${refreshes} s`, change),
    async run() {
      change()
      await server.advance(refreshes, credentials.all())
      return undefined
    },
  }
}

function changeGroups(stage: Stage): SignInStep {
  const { chance, prover } = stage
  const account = chance.pick(names.accounts)
  const groups = chance.some(accountGroups, 2)
  return outsideAndLater(stage, `the provider gives account ${account} the groups [${groups}]`, () => {
    Object.assign(prover.server.provider.accounts[account] ?? {}, { groups })
  })
}

function switchAccount(stage: Stage): SignInStep {
  const { chance, prover } = stage
  const account = chance.pick(names.accounts)
  const isEnabled = chance.is(0.6)
  return outsideAndLater(stage, `the provider ${isEnabled ? 'enables' : 'disables'} account ${account}`, () => {
    Object.assign(prover.server.provider.accounts[account] ?? {}, { isEnabled })
  })
}

function switchProvider({ chance, prover }: Stage): SignInStep {
  const isUp = chance.is(0.7)
  return outside(`the provider is ${isUp ? 'up' : 'down'}`, () => {
    prover.server.provider.isUp = isUp
  })
}

function signOut({ chance, prover }: Stage): SignInStep | undefined {
  const { credentials, coalition, server } = prover
  // Also with keys that are not sessions, which only the browser forgets. The administrator stays signed in.
  const secret = chance.any([...credentials.secrets.keys()].filter(one => credentials.of(one)?.login !== undefined))
  if (secret === undefined || credentials.of(secret)?.principal.username === administrator) return undefined
  const query = chance.is(0.3) ? '?everywhere=true' : ''
  const session = credentials.of(secret)?.key
  return {
    what: 'sign-out',
    danger: 'sessions',
    byAttackers: coalition.has(secret),
    async run() {
      const cookie = `${server.cookie}=${encodeURIComponent(secret)}`
      await ask(prover, { method: 'POST', url: `/auth/logout${query}`, cookie })
      return () => checkEnded(prover, one => one.uid === session?.uid)
    },
  }
}

/** Back-channel logout. */
function endSessions({ chance, prover }: Stage): SignInStep {
  const account = chance.pick(names.accounts)
  return {
    what: `the provider ends the sessions of account ${account}`,
    byAttackers: false,
    async run() {
      const form = { logout_token: prover.server.provider.logoutToken(account) }
      await ask(prover, { method: 'POST', url: '/auth/backchannel-logout/corp', form })
      return () => checkEnded(prover, one => prover.signIns.subjectOf(one) === account)
    },
  }
}

function checkEnded({ credentials, signIns, model }: Prover, isOver: (key: Known) => boolean): void {
  for (const [secret, { keyUid }] of credentials.secrets) {
    const key = model.uids.get(keyUid)
    if (key && signIns.isSession(key) && isOver(key) && credentials.endOf(secret) !== undefined)
      throw new Violation('sign-ins', `the session "${key.name}" works after sign-out`)
  }
}

export function issue(stage: Stage): SignInStep | undefined {
  const { chance, prover, attackers, prepared } = stage
  if (liveTokens(prover, 'ci', 'bot') >= mostTokens) return undefined
  const issuer = chance.pick(['ci', 'bot', 'bot'] as const)
  const isTheirs = attackers.includes(`${issuer}:job`) || prepared.has('machines')
  return issueFor(stage, { issuer, subject: 'job', isTheirs, lifetime: chance.pick([300, 3600]) })
}

type Issued = {
  readonly issuer: 'ci' | 'bot'
  readonly subject: string
  readonly isTheirs: boolean
  readonly lifetime: number
}

export function issueFor({ chance, prover }: Stage, { issuer, subject, isTheirs, lifetime }: Issued): SignInStep {
  const machine: Machine = {
    issuer,
    subject,
    groups: chance.some(['run', 'dev'], 1),
    expires: Math.floor(prover.server.now() / 1000) * 1000 + lifetime * 1000,
  }
  return giveToken(prover, machine, isTheirs)
}

/** Tokens of these issuers that count. */
const liveTokens = ({ signIns, credentials }: Prover, ...issuers: readonly Machine['issuer'][]): number =>
  [...signIns.machines].filter(([token, { issuer }]) => issuers.includes(issuer) && credentials.of(token)).length

function giveToken(prover: Prover, machine: Machine, isTheirs: boolean): SignInStep {
  const { signIns, server } = prover
  const { issuer, subject: sub, groups } = machine
  return {
    what: `issuer ${issuer} gives ${sub} a token with the groups [${groups}]`,
    byAttackers: false,
    async run() {
      const claims = { sub, groups, exp: machine.expires / 1000, jti: `${issuer}-${signIns.machines.size}` }
      const token = server.provider.issue(server.provider.urls[issuer], claims)
      await server.prepare(token)
      return () => {
        signIns.issued(token, machine)
        if (isTheirs) keep(prover, token)
      }
    },
  }
}

export function exchange({ chance, prover }: Stage): SignInStep | undefined {
  const { machines } = prover.signIns
  const token = chance.any([...machines].flatMap(([one, { issuer }]) => (issuer === 'kube' ? [] : [one])))
  return exchangeToken(prover, token)
}

function exchangeToken(prover: Prover, token: string | undefined): SignInStep | undefined {
  const { signIns, credentials, coalition } = prover
  const machine = signIns.machines.get(token ?? '')
  if (token === undefined || !machine) return undefined
  const isTheirs = coalition.has(token)
  return {
    what: `exchange of a token of issuer ${machine.issuer}`,
    danger: 'machines',
    byAttackers: isTheirs,
    async run() {
      const type = 'urn:ietf:params:oauth:token-type:jwt'
      const grant = 'urn:ietf:params:oauth:grant-type:token-exchange'
      const form = { grant_type: grant, subject_token: token, subject_token_type: type }
      const { code, text } = await ask(prover, { method: 'POST', url: '/auth/token', form })
      return changes => {
        const key = newKey(changes)
        if (code !== 200 || !key) return
        if (machine.issuer === 'kube')
          throw new Violation('machines', `the agent of a cluster got key "${key.name}" for its token`)
        const { access_token: secret } = JSON.parse(text) as { access_token: string }
        signIns.exchangedFor(key, machine.issuer)
        credentials.learn(secret, key, 0)
        if (isTheirs) keep(prover, secret)
      }
    },
  }
}

/** The administrator writes the uid of a Cluster that exists. It may be deleted, and its name used again, without another change. */
export function nameAgent({ chance, prover }: Stage): SignInStep | undefined {
  const cluster = chance.any(prover.model.of(kinds.Cluster).filter(isInPool))
  if (!cluster) return undefined
  const agent = { cluster: cluster.name, uid: cluster.uid }
  return {
    what: `auth.yaml names cluster "${agent.cluster}" with the uid ${agent.uid}`,
    byAttackers: false,
    async run() {
      prover.server.nameAgent(agent)
      prover.signIns.agent = agent
      return undefined
    },
  }
}

const mostAgentTokens = 2

/** The attackers steal tokens of the agent in worlds that are prepared for that. */
export function giveAgentToken({ chance, prover, prepared }: Stage): SignInStep | undefined {
  if (liveTokens(prover, 'kube') >= mostAgentTokens) return undefined
  const subject = chance.is(0.7) ? agentTokens : otherTokens
  const expires = Math.floor(prover.server.now() / 1000) * 1000 + chance.pick([3600, 86_400]) * 1000
  const isTheirs = prepared.has('clusters') && chance.is(0.8)
  return giveToken(prover, { issuer: 'kube', subject, groups: [], expires }, isTheirs)
}

function exchangeAgentToken({ chance, prover }: Stage): SignInStep | undefined {
  const tokens = [...prover.signIns.machines].filter(([, { subject }]) => subject === agentTokens)
  return exchangeToken(prover, chance.any(tokens)?.[0])
}

const mostKept = 20

/** The attackers forget secrets that are gone for good. */
function keep(prover: Prover, secret: string): void {
  const { coalition, credentials, signIns, model, server } = prover
  coalition.add(secret)
  for (const one of coalition) {
    if (coalition.size <= mostKept) return
    const token = signIns.machines.get(one)
    const isGone = token
      ? token.expires + 60_000 < server.now()
      : !model.uids.has(credentials.secrets.get(one)?.keyUid ?? '')
    if (isGone) coalition.delete(one)
  }
}

const newKey = (changes: readonly Change[]): Known | undefined =>
  changes.find(({ type, after }) => type === 'created' && after?.kind === kinds.OwnedAccessKey)?.after

type PageRequest = {
  readonly method: string
  readonly url: string
  readonly cookie?: string
  readonly form?: { readonly [field: string]: string }
}

function ask({ server }: Prover, { method, url, cookie, form }: PageRequest) {
  const headers: HttpRequest['headers'] = {
    'sec-fetch-site': 'same-origin',
    ...(cookie ? { cookie } : {}),
    ...(form ? { 'content-type': 'application/x-www-form-urlencoded' } : {}),
  }
  return server.ask({ method, url, headers, ...(form ? { body: new URLSearchParams(form).toString() } : {}) })
}

/** The cookies that a response sets: name=value. */
const cookiesOf = (answer: Parameters<typeof valuesOf>[0]): string[] =>
  valuesOf(answer, 'Set-Cookie').map(one => one.split(';')[0] ?? '')

function sessionIn({ server }: Prover, cookies: readonly string[]): string | undefined {
  const value = cookies.find(one => one.startsWith(`${server.cookie}=`))?.slice(server.cookie.length + 1)
  return value ? decodeURIComponent(value) : undefined
}
