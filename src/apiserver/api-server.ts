// The parts of an API server, and what it is built from.

import type { Companion } from '../api/admission.ts'
import type { AuditReader } from '../api/audit-query.ts'
import type { Caller } from '../api/caller.ts'
import type { Kind } from '../api/kind.ts'
import type { Ref, Resource } from '../api/object.ts'
import type { Affects, PermissionVersions } from '../api/permissions.ts'
import type { Document, Resources } from '../api/resources.ts'
import type { AccessKey, AccessKeyIndex } from '../auth/authn/access-key-index.ts'
import type { Authenticate, Prepare } from '../auth/authn/authenticate.ts'
import type { ClusterState } from '../auth/authn/cluster-index.ts'
import type { SessionChecks } from '../auth/authn/key-problem.ts'
import type { TeamIndex } from '../auth/authn/team-index.ts'
import type { Authorizer } from '../auth/authz/authorize.ts'
import type { Explainer } from '../auth/authz/explain.ts'
import type { MachineTokens } from '../auth/jwt/machine-tokens.ts'
import type { Provider, SignedIn } from '../auth/oidc/provider.ts'
import type { Issuer } from '../auth/tokens/issuer.ts'
import type { ClusterConditionsOptions } from '../controllers/cluster-conditions.ts'
import type { Registry } from '../registry/registry.ts'
import type { InternalWrite } from '../serving/audit-internal.ts'
import type { UnknownKeyLimiter } from '../serving/unknown-key-limiter.ts'
import type { SealContext, SealError, Sealer } from '../storage/encryption.ts'
import type { RingKey } from '../storage/key-ring.ts'
import type { Storage } from '../storage/storage.ts'
import type { PatchPreviews } from './patch-previews.ts'

export type ApiServer = {
  readonly registry: Registry
  readonly clusterStates: () => Iterable<ClusterState>
  /** The desired content of connected clusters, for their conditions. */
  readonly clusterConditions: Pick<ClusterConditionsOptions, 'desired' | 'teamNames' | 'teamAt'>
  readonly sealer: Sealer
  /** The internal client. The audit log records its writes. */
  readonly internalClient: Resources
  /** Writes objects and merges them with stored ones. The audit log records the writes. */
  readonly write: (make: () => readonly Companion[]) => Promise<void>
  /** The internal client with decryption, for controllers that copy secrets. */
  readonly opened: Resources
  /** The same for controllers: these writes fail if another replica runs the controllers. */
  readonly controllers: Pick<ApiServer, 'internalClient' | 'write' | 'opened'>
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
  /** The keys of deleted Users with this username (D63). */
  readonly leftOverKeys: (username: string) => readonly AccessKey[]
  /** Whether the User with this username is disabled or being deleted. */
  readonly isUserDisabled: (username: string) => boolean
  /** Names of the teams of a user. */
  readonly teamsOf: (username: string) => readonly string[]
  /** Whether a key that has not ended depends on the sign-in with this uid (D66). */
  readonly hasDependents: (uid: string) => boolean
  /** Records uses of keys. Returns the number of valid keys. */
  readonly touchKeys: (uses: readonly { readonly uid: string; readonly time: number }[]) => number
  /** The uid of an existing team. */
  readonly teamUid: (name: string) => string | undefined
  /** The name of the team that a text refers to by name or username; otherwise the text (D23). */
  readonly teamNamed: (text: string) => string
  readonly permissionVersions: PermissionVersions
  readonly permissionsChanged: (callback: (affects: Affects) => void) => () => void
  /** Resolves when all indexes are synced and the built-in roles exist. */
  readonly ready: Promise<void>
  stop(): void
}

/** The parts of the server that sign-in uses. */
export type SignInParts = {
  readonly teams: TeamIndex
  readonly keyIndex: AccessKeyIndex
  readonly internalClient: Resources
  /** A stored object, decrypted. */
  readonly open: (kind: Kind, ref: Ref) => Resource | undefined
  /** Whether a key is valid now. */
  readonly isLive: (key: AccessKey) => boolean
  /** Finds or creates the User of a person. Throws 403 (D63, D65). */
  readonly signIn: (provider: Provider, person: SignedIn) => Promise<{ readonly username: string }>
  /** Called with whose permissions may have changed. */
  readonly changed: (affects: Affects) => void
}

/** The parts of sign-in that authentication uses. */
export type OpenedSignIn = {
  /** Absent: no issuer is configured. */
  readonly machineTokens?: MachineTokens | undefined
  /** Absent: no provider is configured. */
  readonly sessions?: SessionChecks | undefined
  /** Whether a user may get a group by signing in, or with a token. `issuers`: of linked identities. */
  readonly mayGetGroup?: ((username: string, issuers: readonly string[]) => (group: string) => boolean) | undefined
  readonly ready?: Promise<void>
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
  /** Accept only keys of users that have a User (D63). */
  readonly requireUsers?: boolean
  /** Groups whose members are administrators. */
  readonly adminGroups?: readonly string[]
  /** The issuer of a configured identity provider. */
  readonly issuerOf?: (provider: string) => string | undefined
  readonly failed: (what: string, error: unknown) => void
  /** Counts unknown keys in reviews, by caller. */
  readonly guard?: Pick<UnknownKeyLimiter, 'mayTry' | 'secondsLeft' | 'failed'>
  /** Called for every value that could not be decrypted. */
  readonly sealBroken?: (place: SealContext, error: SealError) => void
  /** Wraps the internal client to record the writes of the server. */
  readonly recorded?: (internalClient: Resources) => Resources
  /** Records one such write. */
  readonly record?: (write: InternalWrite) => void
  /** The audit log, to read it; absent: it cannot be read. */
  readonly auditLog?: AuditReader
  /** Evaluates patches in the sandbox; absent: the server does not. */
  readonly previewPatches?: PatchPreviews['run']
  /** Opens the sign-in of people and machines; absent: not configured. */
  readonly signIn?: ((parts: SignInParts) => OpenedSignIn) | undefined
  /** Runs before anything else is stored, including the built-in roles. */
  readonly first?: (internalClient: Resources) => Promise<void>
}
