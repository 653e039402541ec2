// Opens every sealed value that is stored, to see whether it opens (D28). `platform verify` calls it.

import { isSealBroken } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import type { Sealer } from '../storage/sealed.ts'
import type { Store } from '../storage/store.ts'
import { load } from './redact.ts'

/** What does not open, each in words. */
export function brokenSeals(store: Pick<Store, 'list'>, kinds: readonly Kind[], sealer: Sealer): string[] {
  return kinds
    .filter(kind => kind.stored && kind.sealed.length)
    .flatMap(kind =>
      store.list({ bucket: kind.id }).entries.flatMap(entry => {
        try {
          load({ sealer }, kind, entry)
          return []
        } catch (error) {
          if (!isSealBroken(error)) throw error
          return [error.message]
        }
      }),
    )
}
