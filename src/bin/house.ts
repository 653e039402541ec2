// Wires the rooms of a server together over an open store: registry, authentication, authorization. serve and admin reset call it.

import { hash, randomBytes, randomUUID } from 'node:crypto'
import { type Authenticate, authenticateWith } from '../auth/authenticate.ts'
import { type Authorizer, openAuthorizer } from '../auth/authorize.ts'
import { type KeyBook, openKeyBook } from '../auth/key-book.ts'
import { kinds } from '../kinds/index.ts'
import { openRegistry, type Registry } from '../registry/registry.ts'
import type { Storage } from '../storage/index.ts'
import type { RingKey } from '../storage/key-ring.ts'
import { openSealer } from '../storage/sealed.ts'

export type House = {
  readonly registry: Registry
  readonly authorizer: Authorizer
  readonly authenticate: Authenticate
  readonly book: KeyBook
}

export type HouseOptions = {
  readonly storage: Storage
  readonly keys: readonly RingKey[]
  readonly now: () => number
  readonly failed: (what: string, error: unknown) => void
}

const random = (size: number) => randomBytes(size)
const digest = (text: string) => hash('sha256', text, 'hex')

export function openHouse({ storage, keys, now, failed }: HouseOptions): House {
  const authorizer = openAuthorizer()
  const lastActivity = (uid: string) => storage.activity.last(uid)
  const registry: Registry = openRegistry({
    kinds,
    store: storage.store,
    sealer: openSealer({ keys, random }),
    now,
    uuid: randomUUID,
    lastActivity,
    tools: caller => ({
      now,
      random,
      digest,
      judge: async question => authorizer.judge(caller, question),
      rules: async namespace => authorizer.rules(caller, namespace),
      keyWithDigest: wanted => book.placeOf(wanted),
    }),
  })
  const book = openKeyBook(registry.inside, error => failed('following access keys', error))
  const touch = (uid: string, time: number) => storage.activity.touch(uid, time)
  return { registry, authorizer, book, authenticate: authenticateWith({ book, now, digest, lastActivity, touch }) }
}
