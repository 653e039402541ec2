// Defines the caller: the authenticated identity of a request.

export type Caller = {
  readonly username: string
  readonly uid?: string
  readonly groups: readonly string[]
  /** The type of the identity that the username refers to (D16). */
  readonly identity?: 'User' | 'Team' | 'Subject'
  readonly extra?: { readonly [key: string]: readonly string[] }
  /** Name of the entry of auth.yaml whose issuer signed the token of the request, if any. Then there is no access key (D67). */
  readonly issuer?: string
  /** Name of the entry of auth.yaml whose token the access key of the request was exchanged for, if any (D67). */
  readonly machine?: string
  /** Name of the access key of the request, if any. */
  readonly key?: string
  /** The uid of that key or the id of that token, which tokens issued with it carry (D31). */
  readonly keyUid?: string
  /** Expiry of the token, or of the secret that the request used if the key was rotated since. The key itself stays valid (D22). */
  readonly keyUntil?: number
  /** The authenticated user of an impersonated request. */
  readonly impersonator?: string
  /** The scope of that key or token; absent: unrestricted. */
  readonly scope?: Scope
}

/** Whether a caller has a token of an external issuer, or an access key that was exchanged for one. */
export const isMachine = ({ issuer, machine }: Caller): boolean => issuer !== undefined || machine !== undefined

/** The credential of a caller, for messages. */
export const credentialOf = ({ key, issuer }: Caller): string =>
  issuer === undefined ? `access key "${key}"` : `tokens of issuer "${issuer}"`

/** SPEC §2.8. An absent list is the same as an empty one. */
export type Scope = {
  readonly roles?: readonly ScopeRole[]
  readonly projects?: readonly { readonly project?: string; readonly readOnly?: boolean }[]
  /** Single secrets, to be read only: a SharedSecret of a namespace, or a ProjectSecret of a project. */
  readonly secrets?: readonly ScopeSecret[]
  readonly spaces?: readonly { readonly project?: string; readonly space?: string }[]
  readonly virtualClusters?: readonly { readonly project?: string; readonly virtualCluster?: string }[]
  readonly clusters?: readonly { readonly cluster?: string }[]
  readonly rules?: readonly ScopeRule[]
  readonly allowPlatformCli?: boolean
}

export type ScopeSecret = { readonly namespace?: string; readonly project?: string; readonly name?: string }

export type ScopeRole = {
  readonly role?: string
  readonly projects?: readonly string[]
  readonly virtualClusters?: readonly string[]
}

export type ScopeRule = {
  readonly verbs?: readonly string[]
  readonly resources?: readonly {
    readonly group?: string
    readonly resources?: readonly string[]
    readonly resourceNames?: readonly string[]
  }[]
  readonly namespaces?: readonly string[]
  readonly nonResourceURLs?: readonly string[]
  readonly requestTargets?: readonly string[]
  readonly cluster?: string
  readonly virtualClusters?: readonly { readonly name?: string; readonly namespace?: string }[]
}

/** The server itself, used by controllers and at first start. No request ever gets it. */
export const systemCaller: Caller = { username: 'system:platform', groups: ['system:masters'] }
