// Asks the provider again for the groups of a signed-in person while the sign-in is in use (D66, D67).
// One refresh at a time per sign-in, also across replicas: refresh tokens rotate, and using one twice ends the sign-in.

import { ApiError, ignoreConflict } from '../../api/errors.ts'
import type { JsonObject, Resource } from '../../api/object.ts'
import { timestamp } from '../../api/object.ts'
import type { Resources } from '../../api/resources.ts'
import { type LoginSession, loginSessionOf, suspendedAnnotation } from '../../kinds/login-session.ts'
import { OwnedAccessKey } from '../../kinds/owned-access-key.ts'
import type { AccessKey, AccessKeyIndex } from '../authn/access-key-index.ts'
import type { SessionChecks } from '../authn/key-problem.ts'
import type { Provider, SignedIn } from '../oidc/provider.ts'
import { ProviderError } from '../oidc/provider-error.ts'
import { identityFields, providerDataOf, unrefreshedTTL } from './session-key.ts'

export type RefreshOptions = {
  readonly keyIndex: Pick<AccessKeyIndex, 'withUid' | 'hasSessions'>
  readonly providerNamed: (name: string) => Pick<Provider, 'config' | 'refresh'> | undefined
  readonly resources: Resources
  /** A stored key, decrypted. */
  readonly open: (name: string) => Resource | undefined
  readonly now: () => number
  /** Called for every refresh. */
  readonly refreshed: (provider: string, result: 'success' | 'suspended' | 'failed', error?: Error) => void
}

/** Set while a replica asks the provider. It ends by itself, in case that replica crashes. */
const refreshingAnnotation = 'platform.sh/refreshing'
const refreshingFor = 30_000
/** A request does not wait longer than this for a slow provider. The groups of the last refresh are used. */
const waitAtMost = 5000
const retryAfter = 15_000

export function openSessionRefresh(options: RefreshOptions): SessionChecks {
  const { keyIndex, providerNamed, now, refreshed } = options
  const running = new Map<string, Promise<void>>()
  const failedAt = new Map<string, number>()

  const providerOf = ({ provider, issuer }: LoginSession) => {
    const found = providerNamed(provider)
    return found?.config.url === issuer ? found : undefined
  }
  const isDue = ({ uid, session }: AccessKey): boolean => {
    if (!session || session.isFinal || session.suspended !== undefined || running.has(uid)) return false
    const provider = providerOf(session)
    if (!provider || now() < session.refreshed + provider.config.lifetimes.refreshAfter * 1000) return false
    return now() >= (failedAt.get(uid) ?? 0) + Math.min(retryAfter, provider.config.lifetimes.refreshAfter * 1000)
  }
  const endOf = ({ session }: AccessKey): number | undefined => {
    const provider = session && providerOf(session)
    if (!session || !provider) return undefined
    const { refreshAfter, refreshGrace } = provider.config.lifetimes
    return session.refreshed + (session.isFinal ? unrefreshedTTL : refreshAfter + refreshGrace) * 1000
  }
  const start = (login: AccessKey): Promise<void> => {
    const { uid, session } = login
    const provider = session && providerOf(session)
    if (!provider) return Promise.resolve()
    const name = provider.config.name
    const work = refreshOnce(options, login, provider)
      .then(result => {
        failedAt.delete(uid)
        if (result !== 'elsewhere') refreshed(name, result)
      })
      .catch((error: Error) => {
        // Keys of sessions that no longer exist would stay here.
        if (failedAt.size > 10_000) failedAt.clear()
        failedAt.set(uid, now())
        refreshed(name, 'failed', error)
      })
      .finally(() => running.delete(uid))
    running.set(uid, work)
    return work
  }

  return {
    areOpen: () => keyIndex.hasSessions(),
    endOf,
    problemOf(login, time) {
      const { session } = login
      if (!session) return undefined
      if (session.suspended !== undefined) return `${session.suspended}; sign in again`
      if (!providerOf(session)) return 'the identity provider of the sign-in is no longer configured; sign in again'
      if (time < (endOf(login) ?? 0)) return undefined
      return session.isFinal
        ? 'the session expired; sign in again'
        : 'the identity provider did not answer, and the groups of the user are too old; retry later or sign in again'
    },
    used(login) {
      if (isDue(login)) void start(login)
    },
    prepare(login) {
      const work = running.get(login.uid) ?? (isDue(login) ? start(login) : undefined)
      return work && atMost(waitAtMost, work)
    },
  }
}

function atMost(milliseconds: number, work: Promise<void>): Promise<void> {
  return new Promise(resolve => {
    const timer = setTimeout(resolve, milliseconds)
    void work.finally(() => {
      clearTimeout(timer)
      resolve()
    })
  })
}

type Result = 'success' | 'suspended' | 'elsewhere'

/** Throws if the provider does not answer. Then the groups stay until the grace ends. */
async function refreshOnce(
  options: RefreshOptions,
  login: AccessKey,
  provider: Pick<Provider, 'config' | 'refresh'>,
): Promise<Result> {
  const stored = await claim(options, login)
  if (!stored) return 'elsewhere'
  const { refreshToken = '', idToken } = providerDataOf(stored)
  const subject = login.session?.subject ?? ''
  try {
    const person = await askTwice(provider, refreshToken, subject)
    // A response without a new ID token keeps the old one, which logout needs.
    const next = { ...person, idToken: person.idToken || idToken }
    await write(options, login, keep => refreshedFields(keep, provider.config.name, next, options.now()))
    return 'success'
  } catch (error) {
    const reason = error instanceof ProviderError ? reasonOf(error) : undefined
    await write(options, login, keep => unrefreshedFields(keep, reason))
    if (reason === undefined) throw error
    return 'suspended'
  }
}

/**
 * Why the provider no longer vouches for the person. undefined: it does not answer as it should, for example because of maintenance or a
 * wrong client secret. Then the groups count until the grace ends.
 */
function reasonOf({ code, message }: ProviderError): string | undefined {
  if (code === 'InvalidGrant') return 'the identity provider ended the sign-in'
  return code === 'Rejected' ? `the identity provider says that the person cannot sign in: ${message}` : undefined
}

/** The answer may have been lost after the token was used. Providers accept a token again for a short time. */
async function askTwice(provider: Pick<Provider, 'refresh'>, token: string, subject: string): Promise<SignedIn> {
  try {
    return await provider.refresh(token, { subject })
  } catch (error) {
    if (!(error instanceof ProviderError) || error.code !== 'Unavailable') throw error
    return provider.refresh(token, { subject })
  }
}

/** Marks the key as being refreshed. undefined: another replica does that, or has done it. */
async function claim({ open, resources, now }: RefreshOptions, login: AccessKey): Promise<Resource | undefined> {
  const stored = open(login.name)
  if (stored?.metadata.uid !== login.uid || loginSessionOf(stored)?.refreshed !== login.session?.refreshed)
    return undefined
  const { annotations = {} } = stored.metadata
  if (Date.parse(annotations[refreshingAnnotation] ?? '') > now()) return undefined
  const until = timestamp(now() + refreshingFor)
  const metadata = { ...stored.metadata, annotations: { ...annotations, [refreshingAnnotation]: until } }
  const marked = { ...stored, metadata } as unknown as JsonObject
  return resources.update(OwnedAccessKey, refOf(login), marked, manager).then(() => stored, ignoreConflict)
}

const manager = { fieldManager: 'platform' }
const refOf = ({ name }: AccessKey) => ({ namespace: '', name })

/** Writes over changes of others, such as a disabled key: the new refresh token must not be lost. */
async function write(
  { open, resources }: RefreshOptions,
  login: AccessKey,
  change: (stored: Resource) => JsonObject,
): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    const stored = open(login.name)
    if (stored?.metadata.uid !== login.uid) return
    try {
      await resources.update(OwnedAccessKey, refOf(login), change(stored), manager)
      return
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 409 || attempt >= 5) throw error
    }
  }
}

function refreshedFields(stored: Resource, provider: string, person: SignedIn, now: number): JsonObject {
  const { [refreshingAnnotation]: _, ...annotations } = stored.metadata.annotations ?? {}
  const username = String(stored.spec?.['user'])
  return {
    ...stored,
    metadata: { ...stored.metadata, annotations },
    spec: { ...stored.spec, ...identityFields(provider, username, person, now) },
  } as unknown as JsonObject
}

/** Without a reason, the next request may try again. */
function unrefreshedFields(stored: Resource, reason: string | undefined): JsonObject {
  const { [refreshingAnnotation]: _, ...kept } = stored.metadata.annotations ?? {}
  const annotations = reason === undefined ? kept : { ...kept, [suspendedAnnotation]: reason }
  return { ...stored, metadata: { ...stored.metadata, annotations } } as unknown as JsonObject
}
