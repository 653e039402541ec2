// Who asks: the identity that authentication found and every verb is bound to.

export type Caller = {
  readonly username: string
  readonly uid?: string
  readonly groups: readonly string[]
  /** What the name is the name of (D16). */
  readonly identity?: 'User' | 'Team' | 'Subject'
  readonly extra?: { readonly [key: string]: readonly string[] }
  /** Name of the access key that was used, if one was. */
  readonly key?: string
  /** The uid of that key: what tokens made with it are known by (D31). */
  readonly keyUid?: string
  /** When the secret that was used ends, where its key was rotated meanwhile: the key itself lives on (D22). */
  readonly keyUntil?: number
  /** Who really asks, where they act as somebody else. */
  readonly impersonator?: string
  /** What that key is confined to; absent: nothing. */
  readonly scope?: Scope
}

/** SPEC §2.8. Every list may be absent, which is the same as empty. */
export type Scope = {
  readonly roles?: readonly ScopeRole[]
  readonly projects?: readonly { readonly project?: string }[]
  readonly spaces?: readonly { readonly project?: string; readonly space?: string }[]
  readonly virtualClusters?: readonly { readonly project?: string; readonly virtualCluster?: string }[]
  readonly clusters?: readonly { readonly cluster?: string }[]
  readonly rules?: readonly ScopeRule[]
  readonly allowPlatformCli?: boolean
}

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

/** The server itself: controllers and first-start wiring act as this caller. It is never given to a request. */
export const systemCaller: Caller = { username: 'system:platform', groups: ['system:masters'] }
