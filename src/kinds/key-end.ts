// When the secret of an access key expires (D18, D22). Authentication and the expiry controller share it.

export type KeyLife = {
  /** When the secret was made, in milliseconds. */
  readonly since: number
  /** Milliseconds; undefined: it does not expire. */
  readonly ttl: number | undefined
  /** Whether every use extends it. */
  readonly slides: boolean
}

/** In milliseconds. A new secret starts anew: a use of the one before does not shorten its life. */
export function keyEnd({ since, ttl, slides }: KeyLife, lastActivity: () => number | undefined): number {
  if (ttl === undefined) return Number.POSITIVE_INFINITY
  return (slides ? Math.max(since, lastActivity() ?? 0) : since) + ttl
}
