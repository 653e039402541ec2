// Builds the API server over an open store: registry, admission, authentication, authorization.

import { hash, randomBytes, randomUUID } from 'node:crypto'
import { type AdmissionDependencies, admissionsFor } from '../admission/admissions.ts'
import { type GateDependencies, openGate } from '../admission/gate.ts'
import type { Companion } from '../api/admission.ts'
import { noAuditLog } from '../api/audit-query.ts'
import { type Scope, systemCaller } from '../api/caller.ts'
import type { Resources } from '../api/resources.ts'
import { openAccessKeyIndex } from '../auth/authn/access-key-index.ts'
import { authenticateWith, isLiveWith, keyEndsWith } from '../auth/authn/authenticate.ts'
import { expiryWarnings, renewalsWith } from '../auth/authn/expiry-warnings.ts'
import { openTeamIndex, type TeamIndex } from '../auth/authn/team-index.ts'
import { openUserIndex } from '../auth/authn/user-index.ts'
import { openAuthorizer } from '../auth/authz/authorize.ts'
import { repairBuiltIns } from '../auth/authz/bootstrap-roles.ts'
import { openDesiredState } from '../auth/authz/desired-state.ts'
import { openExplainer } from '../auth/authz/explain.ts'
import { openPermissionChanges } from '../auth/authz/permission-changes.ts'
import { openRbac, type Rbac } from '../auth/authz/rbac.ts'
import { isNoWider } from '../auth/authz/scope.ts'
import { pulledAsShared, sharedWith } from '../auth/authz/team-grants.ts'
import { openUsernameUses } from '../auth/authz/username-uses.ts'
import { openUsers } from '../auth/sessions/users.ts'
import { openIssuer } from '../auth/tokens/issuer.ts'
import { openSigningKeys } from '../auth/tokens/signing-keys.ts'
import { kinds } from '../kinds/index.ts'
import { readId } from '../kinds/last-read.ts'
import { OwnedAccessKey } from '../kinds/owned-access-key.ts'
import { ProjectSecret } from '../kinds/project-secret.ts'
import { SecretVersion } from '../kinds/secret-version.ts'
import { SigningKey } from '../kinds/signing-key.ts'
import { Team } from '../kinds/team.ts'
import { teamOfGroup } from '../kinds/team-uids.ts'
import { User } from '../kinds/user.ts'
import { openRegistry, type Registry } from '../registry/registry.ts'
import { isNamespaceInUse, namespacesInUse } from '../registry/virtual-kinds.ts'
import { openSealer } from '../storage/encryption.ts'
import { accessKeyLookups } from './access-key-lookups.ts'
import type { ApiServer, BuildOptions } from './api-server.ts'
import { clusterDependencies, clusterReports } from './connected-clusters.ts'
import { tokenSealing } from './encryption.ts'
import { generateKeyPair } from './key-pair.ts'
import { noPreviews } from './patch-previews.ts'
import { signCurrentWith } from './sign-current.ts'
import { storedLookups } from './stored-lookups.ts'

const random = (size: number) => randomBytes(size)
const digest = (text: string) => hash('sha256', text, 'hex')
const isScopeNoWider = (inner: unknown, outer: unknown) =>
  isNoWider(inner as Scope | undefined, outer as Scope | undefined)

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
    requireUsers = false,
    adminGroups = [],
    auditLog = noAuditLog,
    previewPatches = noPreviews,
  } = options
  const lastActivity = (uid: string) => storage.activity.last(uid)
  const rights = openPermissionChanges()
  const sealer = openSealer({ keys, random, ...(sealBroken ? { failed: sealBroken } : {}) })
  // Admission needs parts that depend on the registry, so each function looks its part up when called.
  const dependencies: AdmissionDependencies & GateDependencies = {
    now,
    random,
    auditLog,
    ...tokenSealing(sealer),
    ...storedLookups(() => registry, digest),
    ...clusterDependencies({
      state: () => desired,
      teamNamed: name => teams.get(name),
      open: ref => registry.open(ProjectSecret, ref),
      failed,
    }),
    previewPatches,
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
    callerNamed: user => explainer.callerOf({ user }) ?? explainer.callerNamed(user),
    explainToken: token => (machineTokens?.issuers().length ? machineTokens.explain(token) : undefined),
    callerOf: owner => callerOf(owner),
    teamUid: name => teams.uidOf(name),
    teamsWithUsername: username => teams.withUsername(username),
    teamNamed: text => teams.nameOf(text),
    heldByUser: (username, signsIn) => uses.held(username, signsIn),
    sharedWithUser: username => uses.shared(username),
    deletionsOf: username => users.deletionsOf(username),
    issuerOf: provider => options.issuerOf?.(provider),
    authenticateKey: (caller, key) => accessKeys.authenticateKey(caller, key),
    keyEnds: key => keyEnds(key),
    ownKeyEnds: caller => accessKeys.ownKeyEnds(caller),
    newKeysEnd: caller => accessKeys.newKeysEnd(caller),
    loginOf: caller => accessKeys.loginOf(caller),
    sessionOf: uid => accessKeys.sessionOf(uid),
    endOfKey: uid => accessKeys.endOfKey(uid),
    isDigestTaken: (caller, wanted, by) => accessKeys.isDigestTaken(caller, wanted, by),
    touchKeys: uses => accessKeys.touchKeys(uses),
    maxTokenTTL,
    signToken: (caller, wanted) => signCurrent(caller, wanted),
    generateKeyPair,
    createSigningKey: async () => (await internalClient.create(SigningKey, '', {})).ref.name,
    listVersions: async selection =>
      (await registry.internalClient.list(SecretVersion, selection)).items.map(({ object }) => object),
    namespacesInUse: () => namespacesInUse({ store: storage.store, kinds }),
    isNamespaceInUse: namespace => isNamespaceInUse({ store: storage.store, kinds }, namespace),
  }
  const registry: Registry = openRegistry({
    kinds,
    store: storage.store,
    controllerStore: storage.controllerStore,
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
  const withRecord = (resources: Resources) => recorded?.(resources) ?? resources
  const internalClient = withRecord(registry.internalClient)
  const writeWith = (isController: boolean) => async (make: () => readonly Companion[]) => {
    for (const { document, ...written } of await registry.write(make, isController))
      record?.({ ...written, document, ref: document.ref, manager: 'platform' })
  }
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
    changed: ({ name, roles, affects }) => {
      if (roles) rbac.forget()
      rights.changed(affects)
      desired.teamChanged(name)
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
  const users = openUserIndex({
    resources: registry.internalClient,
    requireUsers,
    changed: rights.changed,
    unused: uid => storage.activity.forget(uid),
    failed: following('users'),
  })
  const mayGetGroup = (name: string) => signIn?.mayGetGroup?.(name, users.get(name)?.issuers ?? []) ?? (() => false)
  const uses = openUsernameUses({ keyIndex, rbac, teams, resources: registry.internalClient, kinds, mayGetGroup })
  const { peek, among } = registry
  const authorizer = openAuthorizer({
    kinds,
    rbac,
    peek,
    among,
    teamUid: team => teams.uidOf(team),
    pulled: team => teams.get(team)?.pulled,
  })
  const signInOf = openUsers({ resources: internalClient, peek, isUsed: uses.isUsed, digest, now })
  const signIn = options.signIn?.({
    teams,
    keyIndex,
    internalClient,
    open: registry.open,
    isLive: key => isLive(key),
    signIn: ({ config: { name, prefixes } }, person) => signInOf.signIn(person, { name, prefix: prefixes.username }),
    changed: rights.changed,
  })
  const { sessions, machineTokens } = signIn ?? {}
  const desired = openDesiredState({
    resources: registry.internalClient,
    teams,
    callerOf: owner => callerOf(owner),
    authorizer,
    indexed: Promise.all([keyIndex, teams, users, rbac].map(one => one.ready)),
    permissionsChanged: rights.follow,
    changed: rights.changed,
    failed,
  })
  const { clusters } = desired
  const keyChecks = { keyIndex, teams, users, clusters, lastActivity, sessions, machines: machineTokens }
  const isLive = isLiveWith({ ...keyChecks, now })
  const explainer = openExplainer({ authorizer, rbac, teams, keyIndex, kinds, peek: registry.peek, isLive })
  // The server acts for no disabled user.
  const callerOf: ApiServer['callerOf'] = owner =>
    owner.user !== undefined && users.isDisabled(owner.user) ? undefined : explainer.callerOf(owner)
  const signingKeys = openSigningKeys({
    resources: registry.internalClient,
    open: name => registry.open(SigningKey, { namespace: '', name }),
    now,
    failed: following('signing keys'),
  })
  const touch = (id: string, time: number) => {
    storage.activity.touch(id, time)
    const user = users.get(keyIndex.withUid(id)?.user ?? '')
    if (user) storage.activity.touch(user.uid, time)
  }
  const authenticate = authenticateWith({ ...keyChecks, now, digest, touch, machineTokens: signIn?.machineTokens })
  const keyEnds = keyEndsWith({ keyIndex, digest, lastActivity })
  const accessKeys = accessKeyLookups({ ...keyChecks, authenticate, isLive, touch, now, guard })
  const issuer = openIssuer({
    url: baseUrl,
    keys: signingKeys,
    keyEnds: accessKeys.tokensEnd,
    clusterUid: name => clusters.get(name)?.uid,
    now,
    uuid: randomUUID,
  })
  const signCurrent = signCurrentWith({
    issuer,
    settled: () => registry.settled([OwnedAccessKey, Team, User]),
    isCurrent: authenticate.isCurrent,
  })
  const parts = [keyIndex, teams, users, rbac, signingKeys, desired]
  const ready = Promise.all([...parts.map(one => one.ready), signIn?.ready])
    .then(() => first?.(internalClient))
    .then(() => repairBuiltIns(internalClient, adminGroups))
  return {
    registry,
    ...clusterReports(desired, teams, ref => registry.open(ProjectSecret, ref)),
    sealer,
    internalClient,
    write: writeWith(false),
    opened: withRecord(registry.as(systemCaller)),
    controllers: {
      internalClient: withRecord(registry.controllerClient),
      write: writeWith(true),
      opened: withRecord(registry.controllerAs(systemCaller)),
    },
    callerOf,
    authorizer,
    authenticate,
    prepare: authenticate.prepare,
    isCurrent: authenticate.isCurrent,
    keyEnds,
    issuer: { ...issuer, sign: signCurrent },
    teamUid: name => teams.uidOf(name),
    teamNamed: dependencies.teamNamed,
    permissionVersions: rights.versions,
    permissionsChanged: rights.follow,
    noteRead: (kind, { ref, object }) => {
      // The time of a deleted object has been removed already, and a new one would stay forever.
      if (storage.store.get({ bucket: kind.id, ...ref })) touch(readId(object.metadata.uid ?? ''), now())
    },
    lastActivity,
    warningFor: expiryWarnings({ keyIndex, now, lastActivity }),
    hasDependents: accessKeys.hasDependents,
    leftOverKeys: username =>
      [...keyIndex.ofUser(username)].filter(
        key => users.isLeftOver(key) || (key.idle !== undefined && !key.deleting && users.isDisabled(username)),
      ),
    isUserDisabled: users.isDisabled,
    teamsOf: username => explainer.callerNamed(username).groups.flatMap(group => teamOfGroup(group) ?? []),
    touchKeys: accessKeys.touchKeys,
    renewals: renewalsWith({ keyIndex, lastActivity, isLive }),
    ready,
    stop: () => {
      for (const one of parts) one.stop()
      signIn?.stop()
    },
  }
}
