// Follows the keys that sign tokens: the current one, and those that the issuer publishes (D31).

import type { CryptoKey, JWK } from 'jose'
import { importJWK } from 'jose/key/import'
import type { Json, JsonObject, Resource } from '../../api/object.ts'
import type { Resources } from '../../api/resources.ts'
import { SigningKey } from '../../kinds/signing-key.ts'
import { startInformer } from '../../reconcile/informer.ts'

export interface SigningKeys {
  readonly ready: Promise<void>
  /** The current signing key; undefined if there is none. */
  current(): Promise<{ readonly id: string; readonly private: CryptoKey } | undefined>
  /** The public part of a published key. */
  publicKey(id: string): Promise<CryptoKey | undefined>
  /** The key set of the issuer. */
  published(): JsonObject
  stop(): void
}

export type SigningKeysOptions = {
  readonly resources: Resources
  /** A stored key with its decrypted private part. */
  readonly open: (name: string) => Resource | undefined
  readonly now: () => number
  readonly failed: (error: unknown) => void
}

/** `made`: the order of keys that start in the same second. */
type Kept = { readonly name: string; readonly signsFrom: number; readonly made: number; readonly jwk: JsonObject }

export function openSigningKeys({ resources, open, now, failed }: SigningKeysOptions): SigningKeys {
  /** Imported once, because these objects never change. */
  const imported = new Map<string, Promise<CryptoKey>>()
  const informer = startInformer({
    resources,
    kind: SigningKey,
    keep: read,
    failed,
    changed: ({ name }, next) => {
      if (!next) imported.delete(name)
    },
  })
  return {
    ready: informer.ready,
    async current() {
      const begun = [...informer.values()].filter(({ signsFrom }) => signsFrom <= now())
      const [newest] = begun.sort((one, other) => other.signsFrom - one.signsFrom || other.made - one.made)
      if (!newest) return undefined
      const key = imported.get(newest.name) ?? importPrivate(open(newest.name))
      imported.set(newest.name, key)
      key.catch(() => imported.delete(newest.name)) // the next call tries again
      return { id: newest.name, private: await key }
    },
    async publicKey(id) {
      const jwk = informer.get({ namespace: '', name: id })?.jwk
      return jwk && ((await importJWK(jwk as JWK, 'ES256')) as CryptoKey)
    },
    published: () => ({ keys: [...informer.values()].map(({ jwk }) => jwk).sort(byId) as Json[] }),
    stop: informer.stop,
  }
}

const byId = (one: JsonObject, other: JsonObject) => (String(one['kid']) < String(other['kid']) ? -1 : 1)

function read({ metadata: { name = '', resourceVersion }, spec = {} }: Resource): Kept {
  const { signsFrom = '', publicKey = {} } = spec as { signsFrom?: string; publicKey?: JsonObject }
  const jwk = { ...publicKey, use: 'sig', alg: 'ES256', kid: name }
  return { name, signsFrom: Date.parse(signsFrom), made: Number(resourceVersion), jwk }
}

async function importPrivate(key: Resource | undefined): Promise<CryptoKey> {
  const { privateKey = '' } = (key?.spec ?? {}) as { privateKey?: string }
  try {
    return (await importJWK(JSON.parse(privateKey) as JWK, 'ES256')) as CryptoKey
  } catch {
    // The message of the parser would quote the key.
    throw new Error(
      `the private key of signing key ${key?.metadata.name} is invalid; create a new one with platform token rotate-key`,
    )
  }
}
