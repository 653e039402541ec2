// Counts the values that this process decrypts. It replaces a function of node:crypto, so that src/ needs no hook.

import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'

export async function countDecryptions(work: () => Promise<unknown>): Promise<number> {
  const original = crypto.createDecipheriv
  let count = 0
  const counting = (...args: Parameters<typeof original>) => {
    count++
    return original(...args)
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
