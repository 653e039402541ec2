// Opens and ends the sessions of signed-in people. A session is an access key of type Login (D64).

import { hash } from 'node:crypto'
import { forbiddenPath, ignoreConflict, unavailable } from '../../api/errors.ts'
import type { JsonObject, Resource } from '../../api/object.ts'
import type { Resources } from '../../api/resources.ts'
import { loginAnnotation, suspendedAnnotation } from '../../kinds/login-session.ts'
import { OwnedAccessKey } from '../../kinds/owned-access-key.ts'
import type { AccessKey, AccessKeyIndex } from '../authn/access-key-index.ts'
import type { Provider, SignedIn } from '../oidc/provider.ts'
import { derivedKey, providerDataOf, signedInKey } from './session-key.ts'

export type OpenedSession = {
  readonly secret: string
  /** Name of the key. */
  readonly name: string
  readonly username: string
  /** Milliseconds: the latest time at which it ends. */
  readonly expires: number
}

export interface Sessions {
  /** For a person that a provider vouched for. Throws 403 with a reason for people. `machine` is shown in lists. */
  create(provider: Provider, person: SignedIn, machine: string): Promise<OpenedSession>
  /** Whether another device can sign in with the session that has this key. */
  isDerivable(keyUid: string | undefined): boolean
  /** For another device of a person who is signed in. Throws 403 if that session has ended. */
  derive(keyUid: string, machine: string): Promise<OpenedSession>
  /**
   * Ends the session with this secret, also one that is rejected at the moment because its provider does not answer. A valid one can
   * end all sessions of its user.
   */
  end(secret: string, which: { readonly isEverywhere: boolean }): Promise<EndedSession | undefined>
  /** Back-channel logout: ends the sessions with this id, or all of a person. Returns their number. */
  endAt(
    provider: string,
    which: { readonly sid?: string | undefined; readonly subject?: string | undefined },
  ): Promise<number>
}

/** `provider` and `idToken`: to end the session of the provider, if it vouched for this one. */
export type EndedSession = { readonly username: string; readonly provider?: string; readonly idToken?: string }

export type SessionsOptions = {
  readonly keyIndex: AccessKeyIndex
  readonly providerNamed: (name: string) => Provider | undefined
  /** Finds or creates the User of a person. Throws 403 (D63, D65). */
  readonly signIn: (provider: Provider, person: SignedIn) => Promise<{ readonly username: string }>
  readonly resources: Resources
  /** A stored key, decrypted. */
  readonly open: (name: string) => Resource | undefined
  /** Whether a key is valid now. */
  readonly isLive: (key: AccessKey) => boolean
  readonly now: () => number
}

const manager = { fieldManager: 'platform' }
/** One person cannot fill the store with sessions. The oldest one ends. */
const maxSessions = 50
/** For keys that others write or create at the same time. */
const maxAttempts = 10

export function openSessions(options: SessionsOptions): Sessions {
  const { keyIndex, providerNamed, signIn, resources, open, isLive, now } = options
  /** `kept`: uids of sessions that must not end for the new one. */
  const store = async (
    username: string,
    { ttl, object, kept = [] }: { ttl: number; object: JsonObject; kept?: readonly string[] },
  ): Promise<OpenedSession> => {
    await endOldest(sessionsOf(username), kept)
    const { object: created } = await resources.create(OwnedAccessKey, '', object, manager)
    const secret = String(created.spec?.['key'])
    return { secret, name: created.metadata.name ?? '', username, expires: now() + ttl * 1000 }
  }
  const remove = (key: AccessKey) =>
    resources
      .delete(OwnedAccessKey, { namespace: '', name: key.name }, { preconditions: { uid: key.uid } })
      .then(() => {}, ignoreConflict)

  /**
   * Ends a session after the others of the list, because without it a repeated sign-out does not find them. Devices can get sessions
   * until it has ended, so it reads the list again.
   */
  async function removeWith(key: AccessKey, list: () => readonly AccessKey[]): Promise<void> {
    for (const other of list()) if (other.uid !== key.uid) await remove(other)
    await remove(key)
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const left = list()
      if (left.length === 0) return
      for (const late of left) await remove(late)
    }
    if (list().length) throw unavailable('not all sessions have ended, because devices keep signing in; try again')
  }

  const sessionsOf = (username: string) =>
    [...keyIndex.ofUser(username)].filter(({ idle, deleting }) => idle !== undefined && !deleting)
  const derivable = (keyUid: string) => {
    const key = keyIndex.withUid(keyUid)
    if (key?.idle === undefined || !isLive(key)) return undefined
    const login = keyIndex.loginOf(key)
    const lifetimes = login?.session && providerNamed(login.session.provider)?.config.lifetimes
    // Another device gets no more time than the sign-in has left (D64).
    const max = login && lifetimes ? Math.floor((login.created - now()) / 1000) + lifetimes.max : 0
    // An ended sign-in is kept for access keys. Otherwise devices could sign in faster than a sign-out ends them.
    if (!login?.user || login.deleting || !lifetimes || max <= 0) return undefined
    return { key: { uid: login.uid, name: login.name, user: login.user }, lifetimes: { ...lifetimes, max } }
  }

  async function endOldest(sessions: readonly AccessKey[], kept: readonly string[]): Promise<void> {
    if (sessions.length < maxSessions) return
    const others = sessions.filter(({ uid }) => !kept.includes(uid))
    const [oldest] = others.sort((one, other) => one.created - other.created)
    if (oldest) await remove(oldest)
  }

  /** Keys whose sign-in was suspended, or is only kept for them, follow the new one (D66). */
  async function adopt(person: Person, login: Pick<AccessKey, 'uid' | 'name'>): Promise<void> {
    const { username, subject, issuer, groups } = person
    for (const before of [...keyIndex.ofUser(username)]) {
      const { session, uid } = before
      if (!session || uid === login.uid || session.subject !== subject || session.issuer !== issuer) continue
      const isConfigured = providerNamed(session.provider)?.config.url === issuer
      if (session.suspended === undefined && !before.deleting && isConfigured) continue
      const isSuspended = session.suspended !== undefined
      // Nobody refreshes it any more, so this is what revokes tokens with a group that the person has lost.
      const hasLost = !isSuspended && session.groups.some(group => !groups.includes(group))
      if (hasLost) await suspend(before)
      for (const child of [...keyIndex.childrenOf(uid)]) await move(child, uid, login)
      if (isSuspended || hasLost) await remove(before)
    }
  }

  async function suspend({ name, uid }: AccessKey): Promise<void> {
    const annotations = { [suspendedAnnotation]: 'the person has signed in again with fewer groups' }
    await rewrite(name, ({ metadata }) => (metadata.uid === uid ? { metadata: { annotations } } : undefined))
  }

  /** Makes a key depend on another sign-in. A key that was created under its name since stays as it is. */
  async function move({ name, uid }: AccessKey, from: string, to: Pick<AccessKey, 'uid' | 'name'>): Promise<void> {
    const next = { metadata: { annotations: { [loginAnnotation]: to.uid } }, spec: { parent: to.name } }
    await rewrite(name, ({ metadata }) =>
      metadata.uid === uid && metadata.annotations?.[loginAnnotation] === from ? next : undefined,
    )
  }

  /** Changes exactly the version that `change` saw. */
  async function rewrite(
    name: string,
    change: (stored: Resource) => { readonly metadata: JsonObject; readonly spec?: JsonObject } | undefined,
  ): Promise<void> {
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const stored = open(name)
      const next = stored && change(stored)
      if (!next) return
      const body = { ...next, metadata: { ...next.metadata, resourceVersion: stored.metadata.resourceVersion ?? '' } }
      const at = { namespace: '', name }
      const written = await resources.patch(OwnedAccessKey, at, { type: 'merge', body }, manager).catch(ignoreConflict)
      if (written) return
    }
  }

  return {
    async create(provider, person, machine) {
      const { name, lifetimes } = provider.config
      const { username } = await signIn(provider, person)
      const object = signedInKey(name, person, { username, displayName: machine, lifetimes, machine, now: now() })
      const session = await store(username, { ttl: Number((object['spec'] as { ttl: number }).ttl), object })
      const uid = open(session.name)?.metadata.uid ?? ''
      await adopt({ ...person, username }, { uid, name: session.name })
      return session
    },
    isDerivable: keyUid => keyUid !== undefined && derivable(keyUid) !== undefined,
    async derive(keyUid, machine) {
      const login = derivable(keyUid)
      if (!login) throw sessionEnded()
      const session = { username: login.key.user, displayName: machine, lifetimes: login.lifetimes, machine }
      const object = derivedKey(login.key, session)
      const opened = await store(login.key.user, { ttl: login.lifetimes.max, object, kept: [keyUid, login.key.uid] })
      if (derivable(keyUid)) return opened
      // The sign-out did not see the new one.
      await resources.delete(OwnedAccessKey, { namespace: '', name: opened.name }).then(() => {}, ignoreConflict)
      throw sessionEnded()
    },
    async end(secret, { isEverywhere }) {
      const key = keyIndex.find(hash('sha256', secret, 'hex'))
      if (!key) return undefined
      const username = key.user ?? ''
      const stored = key.session && open(key.name)
      const own = key.idle === undefined ? [] : [key] // a pasted access key stays valid elsewhere
      // A pasted key may have a scope, and its holder is not always the person.
      const endsAll = isEverywhere && key.idle !== undefined && isLive(key)
      if (endsAll) await removeWith(key, () => sessionsOf(username))
      else for (const one of own) await remove(one)
      if (!stored || !key.session) return { username }
      return { username, provider: key.session.provider, idToken: providerDataOf(stored).idToken }
    },
    async endAt(provider, { sid, subject }) {
      const ended = [...keyIndex.sessionsAt(provider)].filter(
        ({ session }) =>
          (sid === undefined || session?.sid === sid) && (subject === undefined || session?.subject === subject),
      )
      if (sid === undefined && subject === undefined) return 0
      for (const login of ended) {
        // Sessions of other devices came from this one. Access keys stay, and follow the next refresh.
        const derived = () =>
          [...keyIndex.childrenOf(login.uid)].filter(({ idle, deleting }) => idle !== undefined && !deleting)
        await removeWith(login, derived)
      }
      return ended.length
    },
  }
}

const sessionEnded = () => forbiddenPath('the session that confirmed this sign-in has ended; start again')

type Person = Pick<SignedIn, 'subject' | 'issuer' | 'groups'> & { readonly username: string }
