// Checks at startup that a key ring fits the stored data: no key is missing, and every key decrypts (D28).

import { Buffer } from 'node:buffer'
import { isUndecryptable } from '../api/errors.ts'
import { fieldPath, readAt } from '../api/field-path.ts'
import type { Kind } from '../api/kind.ts'
import type { JsonObject } from '../api/object.ts'
import { keyIdOf, printId, SEALED, type Sealer } from '../storage/encryption.ts'
import type { Entry, Store } from '../storage/store.ts'
import { load } from './object-codec.ts'

/** Describes the first value whose key is not in the ring. `ids`: the keys of the ring. */
export function valueOfUnknownKey(store: Store, kinds: readonly Kind[], ids: readonly string[]): string | undefined {
  const known = new Set(ids)
  for (const kind of kinds) {
    if (!kind.stored || kind.sealed.length === 0) continue
    for (const entry of store.list({ bucket: kind.id }).entries) {
      if (!mayBeForeign(entry.text, known)) continue
      const found = foreignPath(kind, entry, known)
      const { namespace, name } = entry.key
      if (found)
        return `${found.path} of ${kind.id} ${namespace ? `${namespace}/` : ''}${name} is encrypted with the key ${printId(found.id)}`
    }
  }
  return undefined
}

const mark = Buffer.from(`"${SEALED}`)

/** A fast check on the bytes with false positives, because plain text may look encrypted. */
function mayBeForeign(text: Buffer, known: ReadonlySet<string>): boolean {
  for (let at = text.indexOf(mark); at !== -1; at = text.indexOf(mark, at + 1)) {
    const end = text.indexOf(':', at + mark.length)
    if (end === -1 || !known.has(text.toString('latin1', at + mark.length, end))) return true
  }
  return false
}

function foreignPath(kind: Kind, { text }: Entry, known: ReadonlySet<string>) {
  const object = JSON.parse(text.toString()) as JsonObject
  for (const path of kind.sealed) {
    const value = readAt(object, fieldPath(path))
    const id = typeof value === 'string' ? keyIdOf(value) : undefined
    if (id !== undefined && !known.has(id)) return { path, id }
  }
  return undefined
}

/** Single damaged values do not cause this many failures without a success. */
const minFailures = 3
const maxTried = 8

/**
 * Keys of the ring that decrypt none of the values with their id. One damaged value must not stop the server, but a key
 * that fails for several values is the wrong one.
 */
export function wrongKeys(store: Store, kinds: readonly Kind[], sealer: Sealer): string[] {
  const tried = new Map<string, { failed: number; opened: boolean }>()
  for (const kind of kinds) {
    if (!kind.stored || kind.sealed.length === 0) continue
    for (const entry of store.list({ bucket: kind.id }).entries) {
      const id = firstId(entry.text)
      const of = id === undefined ? undefined : (tried.get(id) ?? { failed: 0, opened: false })
      if (id === undefined || !of || of.opened || of.failed >= maxTried) continue
      tried.set(id, of)
      if (opens(kind, entry, sealer)) of.opened = true
      else of.failed++
    }
  }
  const isAnyRight = [...tried.values()].some(({ opened }) => opened)
  return [...tried].filter(([, of]) => !of.opened && (!isAnyRight || of.failed >= minFailures)).map(([id]) => id)
}

function firstId(text: Buffer): string | undefined {
  const at = text.indexOf(mark)
  const end = text.indexOf(':', at + mark.length)
  return at === -1 || end === -1 ? undefined : text.toString('latin1', at + mark.length, end)
}

function opens(kind: Kind, entry: Entry, sealer: Sealer): boolean {
  try {
    load({ sealer }, kind, entry)
    return true
  } catch (error) {
    if (!isUndecryptable(error)) throw error
    return false
  }
}
