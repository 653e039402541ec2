// Counts the large values that this process decrypts. Small ones do not count: controllers decrypt them at any time.
// It replaces a function of node:crypto, so that src/ needs no hook.

import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'

const large = 100_000

export async function countDecryptions(work: () => Promise<unknown>): Promise<number> {
  const original = crypto.createDecipheriv
  let count = 0
  const counting = (...args: Parameters<typeof original>) => {
    const decipher = original(...args)
    const update = decipher.update.bind(decipher) as (bytes: Uint8Array) => Buffer
    const counted = (bytes: Uint8Array) => {
      if (bytes.length >= large) count++
      return update(bytes)
    }
    return Object.assign(decipher, { update: counted })
  }
  use(counting as typeof original)
  try {
    await work()
  } finally {
    use(original)
  }
  return count
}

function use(implementation: typeof crypto.createDecipheriv): void {
  crypto.createDecipheriv = implementation
  syncBuiltinESMExports()
}
