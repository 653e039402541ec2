// Builds the API server over an open store: registry, admission, authentication, authorization.

import { generateKeyPairSync, hash, randomBytes, randomUUID } from 'node:crypto'
import { type AdmissionDependencies, admissionsFor } from '../admission/admissions.ts'
import { type GateDependencies, openGate } from '../admission/gate.ts'
import type { Companion } from '../api/admission.ts'
import { type Caller, type Scope, systemCaller } from '../api/caller.ts'
import type { Kind } from '../api/kind.ts'
import type { Affects, PermissionVersions } from '../api/permissions.ts'
import type { Document, Resources } from '../api/resources.ts'
import { openAccessKeyIndex } from '../auth/authn/access-key-index.ts'
import {
  type Authenticate,
  authenticateWith,
  expiryWarnings,
  isLiveWith,
  keyEndsWith,
  type Prepare,
  renewalsWith,
} from '../auth/authn/authenticate.ts'
import { openTeamIndex, type TeamIndex } from '../auth/authn/team-index.ts'
import { type Authorizer, openAuthorizer } from '../auth/authz/authorize.ts'
import { repairBuiltIns } from '../auth/authz/bootstrap-roles.ts'
import { type Explainer, openExplainer } from '../auth/authz/explain.ts'
import { openPermissionChanges } from '../auth/authz/permission-changes.ts'
import { openRbac, type Rbac } from '../auth/authz/rbac.ts'
import { isNoWider } from '../auth/authz/scope.ts'
import { pulledAsShared, sharedWith } from '../auth/authz/team-grants.ts'
import type { MachineTokens, MachineTokensOptions } from '../auth/jwt/machine-tokens.ts'
import { type Issuer, openIssuer } from '../auth/tokens/issuer.ts'
import { openSigningKeys } from '../auth/tokens/signing-keys.ts'
import { kinds } from '../kinds/index.ts'
import { readId } from '../kinds/last-read.ts'
import { OwnedAccessKey } from '../kinds/owned-access-key.ts'
import { ProjectSecret } from '../kinds/project-secret.ts'
import { SecretVersion } from '../kinds/secret-version.ts'
import { SharedSecret } from '../kinds/shared-secret.ts'
import { SigningKey } from '../kinds/signing-key.ts'
import { Team } from '../kinds/team.ts'
import { openRegistry, type Registry } from '../registry/registry.ts'
import { isNamespaceInUse, namespacesInUse } from '../registry/virtual-kinds.ts'
import type { InternalWrite } from '../serving/audit-internal.ts'
import type { UnknownKeyLimiter } from '../serving/unknown-key-limiter.ts'
import { openSealer, type SealContext, type SealError, type Sealer } from '../storage/encryption.ts'
import type { Storage } from '../storage/index.ts'
import type { RingKey } from '../storage/key-ring.ts'
import { accessKeyLookups } from './access-key-lookups.ts'
import { signCurrentWith } from './sign-current.ts'

export type ApiServer = {
  readonly registry: Registry
  readonly sealer: Sealer
  /** The internal client. The audit log records its writes. */
  readonly internalClient: Resources
  /** Writes objects and merges them with stored ones. The audit log records the writes. */
  readonly write: (make: () => readonly Companion[]) => Promise<void>
  /** The internal client with decryption, for controllers that copy secrets. */
  readonly opened: Resources
  /** The owner of an object as a caller; undefined: no owner, or a team that does not exist. */
  readonly callerOf: (owner: Owner) => Caller | undefined
  readonly authorizer: Authorizer
  readonly authenticate: Authenticate
  readonly prepare: Prepare
  readonly isCurrent: (caller: Caller) => boolean
  /** The expiry of an access key, if known. */
  readonly keyEnds: (key: string) => number | undefined
  readonly issuer: Issuer
  /** Records that somebody read an object with its data. */
  readonly noteRead: (kind: Kind, document: Document) => void
  readonly lastActivity: (id: string) => number | undefined
  readonly warningFor: (caller: Caller) => string | undefined
  /** Expiry in milliseconds of the keys that somebody has to renew. */
  readonly renewals: () => Iterable<number>
  /** The uid of an existing team. */
  readonly teamUid: (name: string) => string | undefined
  readonly permissionVersions: PermissionVersions
  readonly permissionsChanged: (callback: (affects: Affects) => void) => () => void
  /** Resolves when all indexes are synced and the built-in roles exist. */
  readonly ready: Promise<void>
  stop(): void
}

type Owner = Parameters<Explainer['callerOf']>[0]

export type BuildOptions = {
  readonly storage: Storage
  readonly keys: readonly RingKey[]
  readonly now: () => number
  /** The maximum lifetime of an access key in seconds; absent: no limit. */
  readonly maxKeyTTL?: number
  /** The maximum lifetime of a direct-cluster token in seconds. */
  readonly maxTokenTTL?: number
  /** The public base URL, which is the issuer of tokens. */
  readonly baseUrl?: () => string
  readonly failed: (what: string, error: unknown) => void
  /** Counts unknown keys in reviews, by caller. */
  readonly guard?: Pick<UnknownKeyLimiter, 'mayTry' | 'secondsLeft' | 'failed'>
  /** Called for every value that could not be decrypted. */
  readonly sealBroken?: (place: SealContext, error: SealError) => void
  /** Wraps the internal client to record the writes of the server. */
  readonly recorded?: (internalClient: Resources) => Resources
  /** Records one such write. */
  readonly record?: (write: InternalWrite) => void
  /** Opens the verification of tokens of external issuers; absent: not configured. */
  readonly machineTokens?: ((parts: Pick<MachineTokensOptions, 'teams' | 'changed'>) => MachineTokens) | undefined
  /** Runs before anything else is stored, including the built-in roles. */
  readonly first?: (internalClient: Resources) => Promise<void>
}

const random = (size: number) => randomBytes(size)
const digest = (text: string) => hash('sha256', text, 'hex')
const isScopeNoWider = (inner: unknown, outer: unknown) =>
  isNoWider(inner as Scope | undefined, outer as Scope | undefined)

/** ES256. The private key is JSON, to be encrypted. */
function generateKeyPair() {
  const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return {
    publicKey: pair.publicKey.export({ format: 'jwk' }) as { [field: string]: string },
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
  const rights = openPermissionChanges()
  const sealer = openSealer({ keys, random, ...(sealBroken ? { failed: sealBroken } : {}) })
  // Admission needs parts that depend on the registry, so each function looks its part up when called.
  const dependencies: AdmissionDependencies & GateDependencies = {
    now,
    random,
    lastActivity,
    isNoWider: isScopeNoWider,
    maxKeyTTL: maxKeyTTL || undefined,
    authorize: (caller, question) => authorizer.decide(caller, question),
    verbCheck: (caller, target) => authorizer.verbCheck(caller, target),
    startComparison: () => authorizer.startComparison(),
    rulesFor: (caller, namespace) => authorizer.rules(caller, namespace),
    rulesOfRole: (kind, ref) => rbac.rulesOf(kind, ref),
    boundTo: group => [...rbac.boundTo(group)],
    sharedWith: async name => [
      ...(await sharedWith(registry.internalClient, kinds, { name, uid: teams.uidOf(name) })),
      ...pulledAsShared(teams.get(name)),
    ],
    explain: (caller, question) => explainer.explain(caller, question),
    whoCan: question => explainer.whoCan(question),
    permissionsOf: team => explainer.permissionsOf(team),
    callerNamed: user => explainer.callerNamed(user),
    callerOf: owner => explainer.callerOf(owner),
    teamUid: name => teams.uidOf(name),
    teamsWithUsername: username => teams.withUsername(username),
    isTeam: name => registry.peek(Team, { namespace: '', name }) !== undefined,
    secretUid: ({ resource, namespace, name = '' }) => {
      const kind = [SharedSecret, ProjectSecret].find(one => one.plural === resource)
      return kind && registry.peek(kind, { namespace, name })?.metadata.uid
    },
    authenticateKey: (caller, key) => accessKeys.authenticateKey(caller, key),
    keyNamed: name => registry.peek(OwnedAccessKey, { namespace: '', name }),
    keyEnds: key => keyEnds(key),
    ownKeyEnds: caller => accessKeys.ownKeyEnds(caller),
    endOfKey: uid => accessKeys.endOfKey(uid),
    takeDigest: (caller, wanted, uid) => accessKeys.takeDigest(caller, wanted, uid),
    touchKeys: uses => accessKeys.touchKeys(uses),
    maxTokenTTL,
    signToken: (caller, wanted) => signCurrent(caller, wanted),
    generateKeyPair,
    createSigningKey: async () => (await internalClient.create(SigningKey, '', {})).ref.name,
    sharedSecretUid: ref => registry.peek(SharedSecret, ref)?.metadata.uid,
    openVersion: ref => registry.open(SecretVersion, ref),
    listVersions: async selection =>
      (await registry.internalClient.list(SecretVersion, selection)).items.map(({ object }) => object),
    namespacesInUse: () => namespacesInUse({ store: storage.store, kinds }),
    isNamespaceInUse: namespace => isNamespaceInUse({ store: storage.store, kinds }, namespace),
  }
  const registry: Registry = openRegistry({
    kinds,
    store: storage.store,
    sealer,
    gate: openGate(dependencies),
    now,
    uuid: randomUUID,
    lastActivity,
    random,
    admissions: admissionsFor(dependencies),
    authorize: dependencies.authorize,
    permissionVersions: rights.versions,
  })
  const internalClient = recorded?.(registry.internalClient) ?? registry.internalClient
  const following = (what: string) => (error: unknown) => failed(`watching ${what}`, error)
  const keyIndex = openAccessKeyIndex({
    maxTTL: maxKeyTTL ? maxKeyTTL * 1000 : undefined,
    internalClient: registry.internalClient,
    changed: rights.changed,
    unused: id => storage.activity.forget(id),
    failed: following('access keys'),
  })
  const teams: TeamIndex = openTeamIndex({
    resources: registry.internalClient,
    peek: name => registry.peek(Team, { namespace: '', name }),
    changed: ({ roles, affects }) => {
      if (roles) rbac.forget()
      rights.changed(affects)
    },
    failed: following('teams'),
  })
  const rbac: Rbac = openRbac({
    teamRoles: team => teams.get(team)?.clusterRoles ?? [],
    teamUid: team => teams.uidOf(team),
    resources: registry.internalClient,
    changed: () => rights.changed(),
    failed: following('roles'),
  })
  const { peek, among } = registry
  const authorizer = openAuthorizer({
    kinds,
    rbac,
    peek,
    among,
    teamUid: team => teams.uidOf(team),
    pulled: team => teams.get(team)?.pulled,
  })
  const isLive = isLiveWith({ teams, now, lastActivity })
  const explainer = openExplainer({ authorizer, rbac, teams, keyIndex, kinds, peek: registry.peek, isLive })
  const signingKeys = openSigningKeys({
    resources: registry.internalClient,
    open: name => registry.open(SigningKey, { namespace: '', name }),
    now,
    failed: following('signing keys'),
  })
  const touch = (uid: string, time: number) => storage.activity.touch(uid, time)
  const machineTokens = options.machineTokens?.({
    teams,
    changed: () => rights.changed(caller => caller.issuer !== undefined),
  })
  const authenticate = authenticateWith({ keyIndex, teams, now, digest, lastActivity, touch, machineTokens })
  const keyEnds = keyEndsWith({ keyIndex, digest, lastActivity })
  const accessKeys = accessKeyLookups({ keyIndex, authenticate, isLive, lastActivity, touch, now, guard })
  const issuer = openIssuer({
    url: baseUrl,
    keys: signingKeys,
    keyEnds: accessKeys.ownKeyEnds,
    now,
    uuid: randomUUID,
  })
  const signCurrent = signCurrentWith({
    issuer,
    settled: () => registry.settled([OwnedAccessKey, Team]),
    isCurrent: authenticate.isCurrent,
  })
  const ready = Promise.all([keyIndex.ready, teams.ready, rbac.ready, signingKeys.ready])
    .then(() => first?.(internalClient))
    .then(() => repairBuiltIns(internalClient))
  return {
    registry,
    sealer,
    internalClient,
    write: async make => {
      for (const { document, ...written } of await registry.write(make))
        record?.({ ...written, document, ref: document.ref, manager: 'platform' })
    },
    opened: recorded?.(registry.as(systemCaller)) ?? registry.as(systemCaller),
    callerOf: explainer.callerOf,
    authorizer,
    authenticate,
    prepare: authenticate.prepare,
    isCurrent: authenticate.isCurrent,
    keyEnds,
    issuer,
    teamUid: name => teams.uidOf(name),
    permissionVersions: rights.versions,
    permissionsChanged: rights.follow,
    noteRead: (kind, { ref, object }) => {
      // The time of a deleted object has been removed already, and a new one would stay forever.
      if (storage.store.get({ bucket: kind.id, ...ref })) touch(readId(object.metadata.uid ?? ''), now())
    },
    lastActivity,
    warningFor: expiryWarnings({ keyIndex, now, lastActivity }),
    renewals: renewalsWith({ keyIndex, lastActivity, isLive }),
    ready,
    stop: () => {
      for (const one of [keyIndex, teams, rbac, signingKeys]) one.stop()
      machineTokens?.stop()
    },
  }
}
