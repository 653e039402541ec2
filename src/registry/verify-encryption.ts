// Decrypts every stored value, to find undecryptable ones (D28).

import { isUndecryptable } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import type { Sealer } from '../storage/encryption.ts'
import type { Entry, Store } from '../storage/store.ts'
import { load } from './object-codec.ts'

/** Describes each undecryptable value. */
export function undecryptableValues(store: Pick<Store, 'list'>, kinds: readonly Kind[], sealer: Sealer): string[] {
  const isBroken = undecryptableIn(kinds, sealer)
  return kinds
    .filter(kind => kind.stored && kind.sealed.length)
    .flatMap(kind => store.list({ bucket: kind.id }).entries.flatMap(isBroken))
}

/** The same for one object. */
export function undecryptableIn(kinds: readonly Kind[], sealer: Sealer): (entry: Entry) => string[] {
  const byId = new Map(kinds.filter(kind => kind.stored && kind.sealed.length).map(kind => [kind.id, kind]))
  return entry => {
    const kind = byId.get(entry.key.bucket)
    try {
      if (kind) load({ sealer }, kind, entry)
      return []
    } catch (error) {
      if (!isUndecryptable(error)) throw error
      return [error.message]
    }
  }
}
