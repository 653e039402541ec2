// Wires the rooms of a server together over an open store: registry, authentication, authorization. serve and admin reset call it.

import { generateKeyPairSync, hash, randomBytes, randomUUID } from 'node:crypto'
import { gate } from '../admission/gate.ts'
import { type Caller, type Scope, systemCaller } from '../api/caller.ts'
import type { Beside, Kind, Question, Tools } from '../api/kind.ts'
import type { JsonObject } from '../api/object.ts'
import type { Document, Resources } from '../api/resources.ts'
import { openKeyBook } from '../auth/authn/access-key-index.ts'
import {
  type Authenticate,
  authenticateWith,
  endOf,
  expiryWarnings,
  isLiveWith,
  keyEndsWith,
  UnknownKey,
} from '../auth/authn/authenticate.ts'
import { ownKeyWith } from '../auth/authn/denied-key-details.ts'
import { openTeams, type Teams } from '../auth/authn/team-index.ts'
import { type Authorizer, openAuthorizer } from '../auth/authz/authorize.ts'
import { repairBuiltIns } from '../auth/authz/bootstrap-roles.ts'
import { type Explainer, openExplainer } from '../auth/authz/explain.ts'
import { openRbac, type Rbac } from '../auth/authz/rbac.ts'
import { isNoWider } from '../auth/authz/scope.ts'
import { sharedWith } from '../auth/authz/team-grants.ts'
import { type Issuer, openIssuer } from '../auth/tokens/issuer.ts'
import { openSigningKeys } from '../auth/tokens/signing-keys.ts'
import { kinds } from '../kinds/index.ts'
import { readId } from '../kinds/last-read.ts'
import { SigningKey } from '../kinds/signing-key.ts'
import { Team } from '../kinds/team.ts'
import { openRegistry, type Registry } from '../registry/registry.ts'
import type { OwnWrite } from '../serving/audit-internal.ts'
import { checkGuess, type UnknownKeyLimiter } from '../serving/unknown-key-limiter.ts'
import { openSealer, type Place, type SealError, type Sealer } from '../storage/encryption.ts'
import type { Storage } from '../storage/index.ts'
import type { RingKey } from '../storage/key-ring.ts'
import { openRights } from './permission-changes.ts'

export type ApiServer = {
  readonly registry: Registry
  readonly sealer: Sealer
  /** The server's own view, whose writes are recorded. */
  readonly inside: Resources
  /** Writes objects that merge with what is there; recorded likewise. */
  readonly write: (make: (tools: Tools) => readonly Beside[]) => Promise<void>
  /** Likewise, with what is sealed opened: for whoever copies it. */
  readonly opened: Resources
  /** Whether whoever owns something may do something else. */
  readonly ownerMay: (owner: Owner, question: Question) => boolean
  readonly authorizer: Authorizer
  readonly authenticate: Authenticate
  /** When an access key ends, as far as is known. */
  readonly keyEnds: (key: string) => number | undefined
  readonly issuer: Issuer
  /** Somebody has read an object with its data. */
  readonly noteRead: (kind: Kind, document: Document) => void
  readonly warningFor: (caller: Caller) => string | undefined
  readonly ownKey: ReturnType<typeof ownKeyWith>
  /** The uid of a team that exists. */
  readonly teamUid: (name: string) => string | undefined
  readonly rightsChanged: (callback: () => void) => () => void
  /** Everything is followed and the built-in roles are in place. */
  readonly ready: Promise<void>
  stop(): void
}

type Owner = Parameters<Explainer['callerOf']>[0]

export type BuildOptions = {
  readonly storage: Storage
  readonly keys: readonly RingKey[]
  readonly now: () => number
  /** Most seconds an access key may live; absent: any. */
  readonly maxKeyTTL?: number
  /** Most seconds a direct-cluster token may live. */
  readonly maxTokenTTL?: number
  /** The public base URL: the issuer of tokens. */
  readonly baseUrl?: () => string
  readonly failed: (what: string, error: unknown) => void
  /** Counts unknown keys that are asked about, by who asks. */
  readonly guard?: Pick<UnknownKeyLimiter, 'mayTry' | 'secondsLeft' | 'failed'>
  /** Told of every sealed value that did not open. */
  readonly sealBroken?: (place: Place, error: SealError) => void
  /** Records what the server writes of its own accord. */
  readonly recorded?: (inside: Resources) => Resources
  /** Records one such write. */
  readonly record?: (write: OwnWrite) => void
  /** What is stored before anything else is, the built-in roles included. */
  readonly first?: (inside: Resources) => Promise<void>
}

const random = (size: number) => randomBytes(size)
const digest = (text: string) => hash('sha256', text, 'hex')
/** As many addresses may guess through one at the same time before the others hear of it. */
const clientsOfGateway = 50

/** ES256: the private half as JSON, to be sealed. */
function keyPair() {
  const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return {
    publicKey: pair.publicKey.export({ format: 'jwk' }) as JsonObject,
    privateKey: JSON.stringify(pair.privateKey.export({ format: 'jwk' })),
  }
}

export function buildApiServer(options: BuildOptions): ApiServer {
  const {
    storage,
    keys,
    now,
    failed,
    first,
    maxKeyTTL,
    maxTokenTTL = 86_400,
    baseUrl = () => '',
    guard,
    recorded,
    record,
    sealBroken,
  } = options
  const lastActivity = (uid: string) => storage.activity.last(uid)
  const rights = openRights()
  const sealer = openSealer({ keys, random, ...(sealBroken ? { failed: sealBroken } : {}) })
  const registry: Registry = openRegistry({
    kinds,
    store: storage.store,
    sealer,
    gate,
    now,
    uuid: randomUUID,
    lastActivity,
    tools: caller => ({
      now,
      random,
      digest,
      judge: async question => authorizer.judge(caller, question),
      rules: async namespace => authorizer.rules(caller, namespace),
      missing: (wanted, namespace) => authorizer.missing(caller, wanted, namespace),
      rulesOfRole: (kind, ref) => rbac.rulesOf(kind, ref),
      boundTo: group => [...rbac.boundTo(group)],
      sharedWith: name => sharedWith(registry.inside, kinds, { name, uid: teams.uidOf(name) }),
      teamUid: name => teams.uidOf(name),
      maxKeyTTL: maxKeyTTL || undefined,
      isWithinScope: scope => isNoWider(scope as Scope | undefined, caller.scope),
      isNoWider: (inner, outer) => isNoWider(inner as Scope | undefined, outer as Scope | undefined),
      maxTokenTTL,
      sign: wanted => issuer.sign(caller, wanted),
      newSigningKey: async () => (await inside.create(SigningKey, '', {})).ref.name,
      keyPair,
      authenticate: key => lookUp(caller, key),
      keyEnds: key => keyEnds(key),
      ownKeyEnds: () => ownEnds(caller),
      endOfKey: uid => {
        const key = book.withUid(uid)
        return key && endOf(key, lastActivity)
      },
      judgeOther: (who, question) => authorizer.judge(who, question),
      explain: (question, who) => explainer.explain(who, question),
      whoCan: question => explainer.whoCan(question),
      permissionsOf: team => explainer.permissionsOf(team),
      callerNamed: user => explainer.callerNamed(user),
      callerOf: owner => explainer.callerOf(owner),
      teamWithUsername: username => teams.withUsername(username),
      takeDigest: (wanted, uid) => takeDigest(caller, wanted, uid),
      touchKeys: uses => {
        // A report comes late, or from a gateway in wrong hands: it does not revive a key that has ended.
        const known = uses.filter(({ uid, time }) => {
          const key = book.withUid(uid)
          return key !== undefined && isLive(key) && time < endOf(key, lastActivity)
        })
        for (const { uid, time } of known) touch(uid, time)
        return known.length
      },
    }),
  })
  const inside = recorded?.(registry.inside) ?? registry.inside
  const following = (what: string) => (error: unknown) => failed(`following ${what}`, error)
  const book = openKeyBook({
    maxTTL: maxKeyTTL ? maxKeyTTL * 1000 : undefined,
    inside: registry.inside,
    told: rights.changed,
    unused: id => storage.activity.forget(id),
    failed: following('access keys'),
  })
  const teamsChanged = ({ roles }: { readonly roles: boolean }) => {
    if (roles) rbac.forget()
    rights.changed()
  }
  const teams: Teams = openTeams({
    resources: registry.inside,
    look: name => registry.peek(Team, { namespace: '', name }),
    changed: teamsChanged,
    failed: following('teams'),
  })
  const rbac: Rbac = openRbac({
    teamRoles: team => teams.get(team)?.clusterRoles ?? [],
    teamUid: team => teams.uidOf(team),
    resources: registry.inside,
    changed: rights.changed,
    failed: following('roles'),
  })
  const { peek, among } = registry
  const authorizer = openAuthorizer({ kinds, rbac, peek, among, teamUid: team => teams.uidOf(team) })
  const isLive = isLiveWith({ teams, now, lastActivity })
  const explainer = openExplainer({ authorizer, rbac, teams, book, kinds, peek: registry.peek, isLive })
  const signingKeys = openSigningKeys({
    resources: registry.inside,
    open: name => registry.open(SigningKey, { namespace: '', name }),
    now,
    failed: following('signing keys'),
  })
  /** Of the very secret that was used. A key that is gone by now has ended, whatever has its name. */
  const ownEnds = ({ keyUid, keyUntil = Number.POSITIVE_INFINITY }: Caller) => {
    if (keyUid === undefined) return undefined
    const key = book.withUid(keyUid)
    const end = Math.min(key ? endOf(key, lastActivity) : now(), keyUntil)
    return end === Number.POSITIVE_INFINITY ? undefined : end
  }
  const issuer = openIssuer({
    url: baseUrl,
    keys: signingKeys,
    keyEnds: ownEnds,
    now,
    uuid: randomUUID,
  })
  const touch = (uid: string, time: number) => storage.activity.touch(uid, time)
  const authenticate = authenticateWith({ book, teams, now, digest, lastActivity, touch })
  const keyEnds = keyEndsWith({ book, digest, lastActivity })
  /** Guessing through somebody else's question is guessing all the same. A known key is never refused. */
  const lookUp = ({ username, impersonator, scope }: Caller, key: string) => {
    try {
      return authenticate(`Bearer ${key}`, true)
    } catch (error) {
      if (!(error instanceof UnknownKey) || !guard) throw error
      // A gateway asks for all of its clients, and makes each address of theirs wait by itself. This bounds who has its key.
      const isGateway = scope?.roles?.some(({ role }) => role === 'agent')
      const source = `${isGateway ? 'gateway ' : ''}reviews by ${impersonator ?? username}`
      checkGuess(guard, source)
      guard.failed(source, isGateway ? clientsOfGateway : 1)
      throw error
    }
  }
  /** A refusal says that a key is in use: it counts as a guess (D62). */
  const takeDigest = ({ username }: Caller, wanted: string, uid: string) => {
    const source = `keys brought by ${username}`
    if (guard) checkGuess(guard, source)
    const taken = book.take(wanted, uid)
    if (!taken) guard?.failed(source)
    return taken
  }
  const ready = Promise.all([book.ready, teams.ready, rbac.ready, signingKeys.ready])
    .then(() => first?.(inside))
    .then(() => repairBuiltIns(inside))
  return {
    registry,
    sealer,
    inside,
    write: async make => {
      for (const { document, ...written } of await registry.write(make))
        record?.({ ...written, document, ref: document.ref, manager: 'platform' })
    },
    opened: recorded?.(registry.as(systemCaller)) ?? registry.as(systemCaller),
    ownerMay: (owner, question) => {
      const as = explainer.callerOf(owner)
      return as !== undefined && authorizer.judge(as, question).allowed
    },
    authorizer,
    authenticate,
    keyEnds,
    issuer,
    teamUid: name => teams.uidOf(name),
    rightsChanged: rights.follow,
    noteRead: (kind, { ref, object }) => {
      // What is gone by now was forgotten already, and would never be forgotten again.
      if (storage.store.get({ bucket: kind.id, ...ref })) touch(readId(object.metadata.uid ?? ''), now())
    },
    warningFor: expiryWarnings({ book, now, lastActivity }),
    ownKey: ownKeyWith({ ends: ownEnds, now }),
    ready,
    stop: () => {
      for (const one of [book, teams, rbac, signingKeys]) one.stop()
    },
  }
}
