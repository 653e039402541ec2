// Defines the types of authorization: requests, decisions and rules.

import type { Caller } from './caller.ts'

/** The resource of an authorization request. */
export type Target = {
  readonly group: string
  readonly resource: string
  readonly subresource?: string
  readonly namespace: string
  readonly name?: string
}

export type Question =
  | {
      readonly verb: string
      readonly target: Target
      /** The response shows only metadata of the objects: PartialObjectMetadata, or a Table without objects. */
      readonly metadataOnly?: true
    }
  | { readonly verb: string; readonly path: string }

/**
 * `reason` is for people. `byScope`: the scope of the access key excludes the request, whatever its owner may do.
 * `allowsMetadata`: it would cover the same request for metadata only.
 */
export type Decision = {
  readonly allowed: boolean
  readonly reason: string
  readonly byScope?: true
  readonly allowsMetadata?: true
}

/** Whether a change may have changed the permissions of a caller. */
export type Affects = (caller: Caller) => boolean

/** Tells whether permissions changed since a moment. */
export type PermissionVersions = {
  /** A number that grows with every change. */
  current(): number
  /** Whether a change since that version may affect the permissions of the caller. */
  isAffected(caller: Caller, since: number): boolean
  /** Counts a change that affects callers with one of these terms (candidates.ts). Absent: it may affect everybody. */
  step(terms?: ReadonlySet<string>): void
}

/** Whether the caller may use a verb on one object, or on a subresource of it. */
export type VerbCheck = (verb: string, subresource?: string) => boolean

/**
 * `missing`: some of the rules that the caller does not have, printed. `limit`: not all rules were compared, because one
 * write compares at most so many permissions.
 */
export type ComparedRules =
  | { readonly hasAll: true }
  | { readonly hasAll: false; readonly missing: readonly string[]; readonly limit?: number }
export type RuleComparison = (caller: Caller, rules: readonly RuleLike[], namespace: string) => Promise<ComparedRules>

/** Access to one object. */
export type Shared = {
  readonly verbs: readonly string[]
  readonly subresources: readonly string[]
  readonly target: Target
}

/**
 * `steps` lead from the key to the rule, or to the denial. `nearMisses` are rules that allow something similar.
 * `unknown` lists parts of the request that this server does not know.
 */
export type Explained = Decision & {
  readonly steps: readonly string[]
  readonly nearMisses: readonly string[]
  readonly unknown: readonly string[]
}

export type TeamPermissions = {
  readonly members: readonly { readonly user: string; readonly via: string }[]
  readonly permissions: readonly { readonly rule: RuleLike; readonly namespace: string; readonly through: string }[]
}

/** A rule of a role. */
export type RuleLike = {
  readonly verbs?: readonly string[] | undefined
  readonly apiGroups?: readonly string[] | undefined
  readonly resources?: readonly string[] | undefined
  readonly resourceNames?: readonly string[] | undefined
  readonly nonResourceURLs?: readonly string[] | undefined
}

/** The rules of a role that is bound in a namespace; '' means everywhere. */
export type BoundRules = {
  readonly rules: readonly RuleLike[]
  readonly namespace: string
  readonly role: { readonly kind: string; readonly namespace: string; readonly name: string }
}

/** The permissions of a caller in a namespace, as rules. */
export type Rules = {
  /** Permissions that rules cannot express. */
  readonly notes?: readonly string[]
  /** Set if the caller has more rules, which this list leaves out because it is limited. */
  readonly isPartial?: true
  readonly resourceRules: readonly {
    readonly verbs: readonly string[]
    readonly apiGroups: readonly string[]
    readonly resources: readonly string[]
  }[]
  readonly nonResourceRules: readonly {
    readonly verbs: readonly string[]
    readonly nonResourceURLs: readonly string[]
  }[]
}

/** Permissions that an object itself grants, with the reason. */
export type ObjectPermission = {
  readonly verbs: readonly string[]
  readonly subresources: readonly string[]
  readonly because: string
  /** Set if the verbs are on the subresources only, not on the object itself. */
  readonly subresourcesOnly?: true
  /** Whether the permission is that of the owner. */
  readonly isOwner?: true
}
/** `teams`: uids of the user's teams, or of the team of the key, by name. */
export type PermissionSubject = {
  readonly username: string
  readonly teams: ReadonlyMap<string, string | undefined>
  readonly may: (question: Question) => boolean
  /** The uid of an existing team. */
  readonly teamUid: (name: string) => string | undefined
}
