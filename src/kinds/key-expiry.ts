// Computes when the secret of an access key expires (D18, D22).

export type KeyLife = {
  /** When the secret was created, in milliseconds. */
  readonly since: number
  /** Milliseconds; undefined: it never expires. */
  readonly ttl: number | undefined
  /** Whether every use extends the lifetime. */
  readonly slides: boolean
}

/** In milliseconds. A new secret has its full lifetime, even if the previous one was used earlier. */
export function keyExpiry({ since, ttl, slides }: KeyLife, lastActivity: () => number | undefined): number {
  if (ttl === undefined) return Number.POSITIVE_INFINITY
  return (slides ? Math.max(since, lastActivity() ?? 0) : since) + ttl
}
