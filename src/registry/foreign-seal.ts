// Finds what is sealed with a key that the key ring does not have, without opening anything. bin asks before it serves (D28).

import { Buffer } from 'node:buffer'
import type { Kind } from '../api/kind.ts'
import type { JsonObject } from '../api/object.ts'
import { keyIdOf, SEALED } from '../storage/sealed.ts'
import type { Entry, Store } from '../storage/store.ts'
import { fieldPath, readAt } from './field-path.ts'

/** The first such value, in words; `ids`: the keys of the ring. */
export function foreignSeal(store: Store, kinds: readonly Kind[], ids: readonly string[]): string | undefined {
  const known = new Set(ids)
  for (const kind of kinds) {
    if (!kind.stored || kind.sealed.length === 0) continue
    for (const entry of store.list({ bucket: kind.id }).entries) {
      if (!mayBeForeign(entry.text, known)) continue
      const path = foreignPath(kind, entry, known)
      const { namespace, name } = entry.key
      if (path) return `${path} of ${kind.id} ${namespace ? `${namespace}/` : ''}${name}`
    }
  }
  return undefined
}

const mark = Buffer.from(`"${SEALED}`)

/** By the bytes alone, which is quick and may be wrong: clear text may look sealed. */
function mayBeForeign(text: Buffer, known: ReadonlySet<string>): boolean {
  for (let at = text.indexOf(mark); at !== -1; at = text.indexOf(mark, at + 1)) {
    const end = text.indexOf(':', at + mark.length)
    if (end === -1 || !known.has(text.toString('latin1', at + mark.length, end))) return true
  }
  return false
}

function foreignPath(kind: Kind, { text }: Entry, known: ReadonlySet<string>): string | undefined {
  const object = JSON.parse(text.toString()) as JsonObject
  return kind.sealed.find(path => {
    const value = readAt(object, fieldPath(path))
    return typeof value === 'string' && !known.has(keyIdOf(value) ?? '')
  })
}
