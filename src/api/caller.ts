// Who asks: the identity that authentication found and every verb is bound to.

export type Caller = {
  readonly username: string
  readonly uid?: string
  readonly groups: readonly string[]
  readonly extra?: { readonly [key: string]: readonly string[] }
  /** Name of the access key that was used, if one was. */
  readonly key?: string
}

/** The server itself: controllers and first-start wiring act as this caller. It is never given to a request. */
export const systemCaller: Caller = { username: 'system:platform', groups: ['system:masters'] }
