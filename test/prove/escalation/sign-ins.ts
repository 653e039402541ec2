// Users, sign-ins and machines in the model: which of them count, and which groups they give (D63–D67).

import type { Grant, IdentityProvider } from './identity-provider.ts'
import type { Known, Model } from './model.ts'
import { kinds } from './objects.ts'
import type { Change } from './step.ts'
import { type AgentEntry, administrator, noAgent } from './universe.ts'

/** A token of a machine. Times in milliseconds. */
export type Machine = {
  readonly issuer: 'ci' | 'bot' | 'kube'
  readonly subject: string
  readonly groups: readonly string[]
  readonly expires: number
}

export type SignIns = {
  /** By secret: the tokens that an issuer gave. */
  readonly machines: ReadonlyMap<string, Machine>
  /** Keys that machines got for their tokens: the issuer, by uid. */
  readonly exchanged: ReadonlyMap<string, Machine['issuer']>
  /** The Cluster whose agent the service account is. */
  agent: AgentEntry
  userOf(username: string): Known | undefined
  /** Whether nothing of this user counts. */
  isDisabled(username: string): boolean
  /** Whether its User, or the lack of one, or its sign-in makes a key invalid. */
  isBlocked(key: Known): boolean
  /** Whether the User of a key was deleted. */
  hasEnded(key: Known): boolean
  /** The session that a provider vouched for, behind a key: its uid. */
  loginOf(key: Known): string | undefined
  /** The account of a session. */
  subjectOf(key: Known): string | undefined
  /** Whether the key itself is a session. */
  isSession(key: Known): boolean
  /** When a sign-in stops to count without another answer of the provider. */
  endOf(login: string): number
  /** The groups of the provider. */
  groupsOf(key: Known): readonly string[]
  /** The username of an account, also while its User is being deleted; undefined: it cannot sign in. */
  usernameOf(subject: string): string | undefined
  /** The User of an account that the provider vouches for; `isLinkable`: it never signed in, so a link can give it any User. */
  accountOf(subject: string): { readonly user: Known | undefined; readonly isLinkable: boolean } | undefined
  /** Takes over a change of the store. */
  follow(change: Change): void
  /** `changes`: with the sign-in. */
  signedIn(key: Known, grant: Grant, changes: readonly Change[]): void
  /** Somebody created a key with the session. */
  derived(key: Known, login: string): void
  linked(subject: string, username: string): void
  issued(token: string, machine: Machine): void
  exchangedFor(key: Known, issuer: Machine['issuer']): void
}

const second = 1000
const [refreshAfter, grace, retryAfter] = [600 * second, 3600 * second, 15 * second]
/** A session ends when it was not used for this long. */
export const idle = 12 * 3600 * second
/** A token of an issuer counts this long after its expiry. */
export const leeway = 5 * second
export const prefix = 'corp:'

type Options = {
  readonly model: Model
  readonly provider: IdentityProvider
  readonly requiresUsers: boolean
  readonly now: () => number
}

export function openSignIns({ model, provider, requiresUsers, now }: Options): SignIns {
  const grants = new Map<string, Grant>()
  const parents = new Map<string, string>()
  const ended = new Set<string>()
  const identities = new Map<string, string>()
  const machines = new Map<string, Machine>()
  const exchanged = new Map<string, Machine['issuer']>()

  const userOf = (username: string) => model.of(kinds.User).find(({ object }) => object.spec?.username === username)
  const isDisabled = (username: string) => {
    const user = userOf(username)?.object
    return user !== undefined && (user.spec?.disabled === true || user.metadata.deletionTimestamp !== undefined)
  }
  const loginOf = ({ uid }: Known) => (grants.has(uid) ? uid : parents.get(uid))
  const endOf = (login: string) => (grants.get(login)?.answered ?? 0) + refreshAfter + grace
  const isSuspended = (login: string) => grants.get(login)?.hasEnded !== false

  /** All sign-ins are refreshed when the clock moves, unless the provider is down or a request has just failed. */
  function currentGroups({ subject, groups, answered, failed }: Grant): readonly string[] {
    const isFresh = now() < answered + refreshAfter
    if (isFresh || !provider.isUp || now() < failed + retryAfter) return groups
    const { groups: left = [], isEnabled } = provider.accounts[subject] ?? {}
    return isEnabled ? groups.filter(group => left.includes(group)) : []
  }

  return {
    machines,
    exchanged,
    agent: noAgent,
    userOf,
    isDisabled,
    isBlocked(key) {
      const username = key.object.spec?.user
      if (username === undefined) return false
      const isMissing = userOf(username) === undefined
      if (isDisabled(username) || ended.has(key.uid)) return true
      const login = loginOf(key)
      if (login === undefined) return isMissing && requiresUsers && username !== administrator
      return isMissing || !model.uids.has(login) || isSuspended(login) || now() >= endOf(login)
    },
    hasEnded: ({ uid }) => ended.has(uid),
    loginOf,
    subjectOf: ({ uid }) => grants.get(uid)?.subject,
    isSession: ({ uid }) => grants.has(uid),
    endOf,
    groupsOf(key) {
      const grant = grants.get(loginOf(key) ?? '')
      return grant ? currentGroups(grant).map(group => `${prefix}${group}`) : []
    },
    usernameOf(subject) {
      const username = identities.get(subject) ?? `${prefix}${subject}`
      const isIn = provider.accounts[subject]?.isEnabled && userOf(username)?.object.spec?.disabled !== true
      return isIn ? username : undefined
    },
    accountOf(subject) {
      if (!provider.accounts[subject]?.isEnabled) return undefined
      const username = identities.get(subject) ?? `${prefix}${subject}`
      return { user: userOf(username), isLinkable: !identities.has(subject) }
    },
    follow({ before, after }) {
      if (before?.kind !== kinds.User) return
      const isEnd = before.object.metadata.deletionTimestamp === undefined || after === undefined
      if (!isEnd || (after && after.object.metadata.deletionTimestamp === undefined)) return
      for (const { uid, object } of model.of(kinds.OwnedAccessKey))
        if (object.spec?.user === before.object.spec?.username) ended.add(uid)
    },
    signedIn(key, grant, changes) {
      const username = key.object.spec?.user ?? ''
      identities.set(grant.subject, username)
      grants.set(key.uid, grant)
      // Keys whose sign-in was suspended, or is kept only for them, follow the new one.
      for (const [child, login] of parents) {
        // The server may have deleted it after that.
        const other = model.uids.get(login) ?? changes.find(one => one.before?.uid === login)?.before
        const isSame = grants.get(login)?.subject === grant.subject && other?.object.spec?.user === username
        const isOver = isSuspended(login) || other?.object.metadata.deletionTimestamp !== undefined
        if (isSame && isOver) parents.set(child, key.uid)
      }
    },
    derived: ({ uid }, login) => void parents.set(uid, login),
    linked: (subject, username) => void identities.set(subject, username),
    issued: (token, machine) => void machines.set(token, machine),
    exchangedFor: ({ uid }, issuer) => void exchanged.set(uid, issuer),
  }
}
