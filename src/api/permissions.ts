// Words for permissions: what a question is about, and what answers to it are made of. The evaluator answers with them, kinds ask with them.

/** What a permission question is about. */
export type Target = {
  readonly group: string
  readonly resource: string
  readonly subresource?: string
  readonly namespace: string
  readonly name?: string
}

export type Question =
  | { readonly verb: string; readonly target: Target }
  | { readonly verb: string; readonly path: string }

/** `reason` is for people. `byScope`: the access key's scope excludes it, whatever its owner may do. */
export type Decision = { readonly allowed: boolean; readonly reason: string; readonly byScope?: true }

/** Rights on one object. */
export type Shared = {
  readonly verbs: readonly string[]
  readonly subresources: readonly string[]
  readonly target: Target
}

/**
 * Steps from the key to the rule, or to where it ended; near misses say what would have allowed something like it;
 * unknown says what of the question this server has not.
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

/** The rules of a role that is bound in a namespace; '': everywhere. */
export type BoundRules = {
  readonly rules: readonly RuleLike[]
  readonly namespace: string
  readonly role: { readonly kind: string; readonly namespace: string; readonly name: string }
}

/** What a caller may do in a namespace, as rules. */
export type Rules = {
  /** Why it may be less than that. */
  readonly confinedBy?: string
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

/** What an object itself allows somebody, and why. */
export type Right = {
  readonly verbs: readonly string[]
  readonly subresources: readonly string[]
  readonly because: string
}
/** `teams`: uids, by name, of the teams they are in, or of the team whose key they use. */
export type Who = {
  readonly username: string
  readonly teams: ReadonlyMap<string, string | undefined>
  readonly may: (question: Question) => boolean
  /** The uid of a team that exists. */
  readonly teamUid: (name: string) => string | undefined
}
