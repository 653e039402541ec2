// The public keys of an external issuer: found by discovery, refreshed, and kept while the issuer is unreachable.

import type { CryptoKey, JWK } from 'jose'
import { importJWK } from 'jose/key/import'
import { isObject, type Json, type JsonObject } from '../../api/object.ts'
import { urlProblem } from './issuer-rules.ts'

/** A published key. It stays the same object as long as the issuer publishes the same key. */
export type PublishedKey = { readonly key: CryptoKey; readonly id: string | undefined; readonly algorithm: string }

export interface IssuerKeys {
  /** The key for a token. Fetches the key set again for an unknown key, at most every 30 seconds. Throws KeysUnavailable. */
  keyFor(id: string | undefined, algorithm: string): Promise<PublishedKey | undefined>
  isPublished(key: PublishedKey): boolean
  /** Milliseconds since the last successful fetch; undefined: none yet. */
  age(): number | undefined
  readonly failures: number
  stop(): void
}

/** There are no keys yet, and the last fetch failed. */
export class KeysUnavailable extends Error {}

export type IssuerKeysOptions = {
  /** The URL of the issuer, which the discovery document must repeat. */
  readonly url: string
  readonly discoveryURL: string
  readonly fetchJson: (url: string) => Promise<Json>
  /** Closes the connections of `fetchJson`. */
  readonly close: () => void
  readonly now: () => number
  readonly failed: (error: unknown) => void
  readonly worked: () => void
  /** Called when a key is no longer published. */
  readonly withdrawn: () => void
}

const refreshEvery = 300_000
/** Tokens with invented key ids cause at most one fetch in this time. */
const cooldown = 30_000
const firstRetry = 1000
const maxKeys = 100
/** Without contact to the issuer, keys are used no longer than this. */
const maxAge = 24 * 3600 * 1000
/** A token with an unknown key waits no longer for a fetch. */
const longestWait = 2000

/** The algorithms of tokens: asymmetric ones only. */
export const algorithms = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
] as const

export function openIssuerKeys(options: IssuerKeysOptions): IssuerKeys {
  const { now, failed, worked, withdrawn } = options
  /** By id, algorithm and content, so that an unchanged key keeps its object. */
  let keys = new Map<string, PublishedKey>()
  let fetched: number | undefined
  let missed = Number.NEGATIVE_INFINITY
  let [failures, retryAfter] = [0, firstRetry]
  let fetching: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined
  let stopped = false

  async function update(): Promise<void> {
    let next = refreshEvery
    try {
      const found = await fetchKeys(options, keys)
      if (stopped) return
      const isWithdrawn = [...keys.keys()].some(stamp => !found.has(stamp))
      keys = found
      fetched = now()
      retryAfter = firstRetry
      worked()
      if (isWithdrawn) withdrawn()
    } catch (error) {
      if (stopped) return
      failures++
      failed(error)
      if (fetched !== undefined && now() - fetched > maxAge && keys.size > 0) {
        keys = new Map()
        withdrawn()
      }
      next = retryAfter
      retryAfter = Math.min(retryAfter * 2, cooldown)
    }
    clearTimeout(timer)
    timer = setTimeout(() => void refresh(), next).unref()
  }

  /** One at a time. */
  function refresh(): Promise<void> {
    fetching ??= update().finally(() => {
      fetching = undefined
    })
    return fetching
  }
  void refresh()

  const find = (id: string | undefined, algorithm: string): PublishedKey | undefined => {
    const fitting = [...keys.values()].filter(one => one.algorithm === algorithm && (id === undefined || one.id === id))
    // Without an id, the key must be unambiguous.
    return fitting.length === 1 || id !== undefined ? fitting[0] : undefined
  }

  return {
    async keyFor(id, algorithm) {
      const known = find(id, algorithm)
      if (known) return known
      if (fetching) await briefly(fetching)
      else if (fetched !== undefined && now() - missed >= cooldown) {
        missed = now()
        await briefly(refresh())
      }
      const found = find(id, algorithm)
      if (!found && fetched === undefined) throw new KeysUnavailable()
      return found
    },
    isPublished: key => [...keys.values()].includes(key),
    age: () => (fetched === undefined ? undefined : now() - fetched),
    get failures() {
      return failures
    },
    stop() {
      stopped = true
      clearTimeout(timer)
      options.close()
    },
  }
}

async function briefly(work: Promise<void>): Promise<void> {
  const waiting = Promise.withResolvers<void>()
  const timer = setTimeout(waiting.resolve, longestWait).unref()
  await Promise.race([work, waiting.promise])
  clearTimeout(timer)
}

async function fetchKeys(
  { url, discoveryURL, fetchJson }: IssuerKeysOptions,
  before: ReadonlyMap<string, PublishedKey>,
): Promise<Map<string, PublishedKey>> {
  const metadata = await fetchJson(discoveryURL)
  const { issuer, jwks_uri: keysUrl } = isObject(metadata) ? metadata : {}
  if (issuer !== url)
    throw new Error(`${discoveryURL} describes another issuer; issuer.url must be equal to its field issuer`)
  // A remote issuer must not make the server send requests to its own host.
  const isLocal = url.startsWith('http:')
  if (typeof keysUrl !== 'string' || urlProblem(keysUrl) || (keysUrl.startsWith('http:') && !isLocal))
    throw new Error(`the jwks_uri in ${discoveryURL} is invalid`)
  const set = await fetchJson(keysUrl)
  const list = isObject(set) && Array.isArray(set['keys']) ? (set['keys'] as Json[]) : undefined
  if (!list) throw new Error(`${keysUrl} is not a JSON Web Key Set`)
  const found = new Map<string, PublishedKey>()
  for (const jwk of list.slice(0, maxKeys)) {
    if (!isObject(jwk)) continue
    for (const algorithm of algorithmsOf(jwk)) {
      const stamp = JSON.stringify([jwk['kid'], algorithm, jwk['n'], jwk['e'], jwk['crv'], jwk['x'], jwk['y']])
      const key = before.get(stamp) ?? (await importKey(jwk, algorithm))
      if (key) found.set(stamp, key)
    }
  }
  // An empty set counts: the issuer withdrew all keys.
  return found
}

async function importKey(jwk: JsonObject, algorithm: string): Promise<PublishedKey | undefined> {
  try {
    const { kid } = jwk
    const key = (await importJWK(jwk as JWK, algorithm)) as CryptoKey
    return { key, id: typeof kid === 'string' ? kid : undefined, algorithm }
  } catch {
    return undefined // a malformed key must not hide the others
  }
}

const byCurve: { readonly [curve: string]: string } = {
  'P-256': 'ES256',
  'P-384': 'ES384',
  'P-521': 'ES512',
  Ed25519: 'EdDSA',
}

/** The algorithms that a key can verify. A private key or a key for encryption has none. */
function algorithmsOf({ kty, crv, use = 'sig', alg, d }: JsonObject): readonly string[] {
  if (use !== 'sig' || d !== undefined) return []
  const fitting =
    kty === 'RSA'
      ? algorithms.filter(one => /^[RP]S/.test(one))
      : kty === 'EC' || kty === 'OKP'
        ? [byCurve[String(crv)] ?? '']
        : []
  return fitting.filter(
    one => one !== '' && (alg === undefined || alg === one || (alg === 'Ed25519' && one === 'EdDSA')),
  )
}
