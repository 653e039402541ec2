// The issuer's public keys: fetched, refreshed, and kept while the issuer is unreachable.

import type { CryptoKey, JWK } from 'jose'
import { importJWK } from 'jose/key/import'
import { isObject, type Json, type JsonObject } from '../../api/object.ts'

export interface KeySet {
  /** Resolves after the first successful fetch. */
  readonly ready: Promise<void>
  /** For an unknown id, fetches the set again and waits for it, at most once a second. */
  keyOf(id: string): Promise<CryptoKey | undefined>
  /** Grows when a key disappears or another key has its id. Earlier verifications may have used that key. */
  readonly keyChanges: number
  /** Milliseconds since the last fetch; infinite before the first. */
  age(): number
  /** Stops fetching and logging. */
  stop(): void
}

export type KeySetOptions = {
  readonly fetch: () => Promise<Json>
  readonly now: () => number
  readonly failed: (error: unknown) => void
  /** Called after every fetch. */
  readonly contacted?: () => void
  /** Milliseconds between fetches. */
  readonly every?: number
  readonly atMostEvery?: number
}

/** A larger set is not one of ours. */
const maxKeys = 100

export function openKeySet({
  fetch,
  now,
  failed,
  contacted,
  every = 300_000,
  atMostEvery = 1000,
}: KeySetOptions): KeySet {
  let keys: Keys = new Map()
  let losses = 0
  let fetched = Number.NEGATIVE_INFINITY
  let tried = Number.NEGATIVE_INFINITY
  let refreshing: Promise<void> | undefined
  let isFetching = false
  let timer: NodeJS.Timeout | undefined
  let stopped = false
  let isReady: () => void = () => {}
  const ready = new Promise<void>(resolve => {
    isReady = resolve
  })

  async function update(): Promise<void> {
    if (stopped) return
    tried = now()
    isFetching = true
    try {
      const found = await readKeys(await fetch())
      if ([...keys].some(([id, { point }]) => found.get(id)?.point !== point)) losses++
      keys = found
      fetched = now()
      contacted?.()
      isReady()
    } catch (error) {
      if (!stopped) failed(error) // keep the known keys
    }
    clearTimeout(timer)
    if (!stopped) timer = setTimeout(() => void refresh(), keys.size ? every : atMostEvery).unref()
  }

  /** One fetch at a time and a minimum interval, for any number of callers. */
  function refresh(): Promise<void> {
    const wait = Math.min(atMostEvery, Math.max(0, tried + atMostEvery - now()))
    refreshing ??= (wait ? new Promise<void>(resolve => setTimeout(resolve, wait).unref()) : Promise.resolve())
      .then(update)
      .finally(() => {
        refreshing = undefined
        isFetching = false
      })
    return refreshing
  }
  void refresh()

  return {
    ready,
    async keyOf(id) {
      const known = keys.get(id)
      if (known) return known.key
      // A fetch that is already running may return a key set without the requested key.
      if (isFetching) await refreshing
      if (!keys.has(id)) await refresh()
      return keys.get(id)?.key
    },
    get keyChanges() {
      return losses
    },
    age: () => now() - fetched,
    stop() {
      stopped = true
      clearTimeout(timer)
    },
  }
}

/** By id. A different point with the same id is a different key. */
type Keys = Map<string, { readonly key: CryptoKey; readonly point: string }>

async function readKeys(set: Json): Promise<Keys> {
  const list = isObject(set) && Array.isArray(set['keys']) ? (set['keys'] as Json[]) : undefined
  if (!list) throw new Error('the issuer did not return a JSON Web Key Set')
  const found: Keys = new Map()
  for (const one of list.slice(0, maxKeys)) {
    if (!isObject(one) || !isOurs(one)) continue // keys for other purposes
    const key = (await importJWK(one as JWK, 'ES256')) as CryptoKey
    found.set(one['kid'] as string, { key, point: `${one['x']} ${one['y']}` })
  }
  return found
}

const isOurs = ({ kty, crv, kid, use = 'sig', alg = 'ES256', d }: JsonObject) =>
  kty === 'EC' && crv === 'P-256' && typeof kid === 'string' && use === 'sig' && alg === 'ES256' && d === undefined
