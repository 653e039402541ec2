// The issuer's public keys: fetched, refreshed, and kept while the issuer is unreachable.

import type { CryptoKey, JWK } from 'jose'
import { importJWK } from 'jose/key/import'
import { isObject, type Json, type JsonObject } from '../../api/object.ts'

export interface KeySet {
  /** Resolves once it was fetched for the first time. */
  readonly ready: Promise<void>
  /** An unknown id has the set fetched again, at most once a second, and waits for that. */
  keyOf(id: string): Promise<CryptoKey | undefined>
  /** Grows whenever a key has gone, or another one has its id: what was verified before may have been with that one. */
  readonly keyChanges: number
  /** Milliseconds since it was last fetched; infinite before that. */
  age(): number
  /** Ends all fetching and logging. */
  stop(): void
}

export type KeySetOptions = {
  readonly fetch: () => Promise<Json>
  readonly now: () => number
  readonly failed: (error: unknown) => void
  /** Called whenever they were fetched. */
  readonly contacted?: () => void
  /** Between two looks, in milliseconds. */
  readonly every?: number
  readonly atMostEvery?: number
}

/** More would be no key set of ours. */
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
      if (!stopped) failed(error) // what is known stays
    }
    clearTimeout(timer)
    if (!stopped) timer = setTimeout(() => void refresh(), keys.size ? every : atMostEvery).unref()
  }

  /** One at a time, and not too often, however many wait for it. */
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
      // An earlier fetch may return a key set that is older than the requested key.
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

/** By id. Another point under the same id is another key. */
type Keys = Map<string, { readonly key: CryptoKey; readonly point: string }>

async function readKeys(set: Json): Promise<Keys> {
  const list = isObject(set) && Array.isArray(set['keys']) ? (set['keys'] as Json[]) : undefined
  if (!list) throw new Error('the issuer did not return a JSON Web Key Set')
  const found: Keys = new Map()
  for (const one of list.slice(0, maxKeys)) {
    if (!isObject(one) || !isOurs(one)) continue // other keys may be for others
    const key = (await importJWK(one as JWK, 'ES256')) as CryptoKey
    found.set(one['kid'] as string, { key, point: `${one['x']} ${one['y']}` })
  }
  return found
}

const isOurs = ({ kty, crv, kid, use = 'sig', alg = 'ES256', d }: JsonObject) =>
  kty === 'EC' && crv === 'P-256' && typeof kid === 'string' && use === 'sig' && alg === 'ES256' && d === undefined
