// Marks in the data of secrets: which object each was written to, and finding them in answers.

import type { Words } from './objects.ts'

export type Canaries = {
  /** Data with a new mark in it. */
  make(): Words
  /** The marks in this text belong to an object from now on. */
  planted(text: string, uid: string): void
  /** Uids of the objects whose marks are in a text; marks that were never stored belong to nobody. */
  foundIn(text: string): ReadonlySet<string>
}

/** The first six bytes of every mark, in base64, end at a whole character: so a mark can be found without decoding. */
const mark = /Y2FuYXJ5[\w+/]+={0,2}/g
/** A fast check for text without marks. */
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
