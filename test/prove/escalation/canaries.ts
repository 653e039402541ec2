// Canaries in the data of secrets: the object that each was written to, and how to find them in responses.

import type { Words } from './objects.ts'

export type Canaries = {
  /** Data with a new canary. */
  make(): Words
  /** Assigns the canaries in this text to an object. */
  planted(text: string, uid: string): void
  /** Uids of the objects whose canaries are in a text. Canaries that were never stored belong to no object. */
  foundIn(text: string): ReadonlySet<string>
}

/** The first six bytes of every canary end at a character boundary in base64, so it can be found without decoding. */
const mark = /Y2FuYXJ5[\w+/]+={0,2}/g
/** A fast check for text without canaries. */
const begin = 'Y2FuYXJ5'

export function openCanaries(): Canaries {
  const owners = new Map<string, string>()
  let made = 0
  return {
    make: () => ({ password: Buffer.from(`canary-${++made}-of-this-world`).toString('base64') }),
    planted(text, uid) {
      for (const [found] of text.matchAll(mark)) if (!owners.has(found)) owners.set(found, uid)
    },
    foundIn(text) {
      const found = new Set<string>()
      if (!text.includes(begin)) return found
      for (const [one] of text.matchAll(mark)) {
        const uid = owners.get(one)
        if (uid !== undefined) found.add(uid)
      }
      return found
    },
  }
}
