// Reads and writes the text of a key ring file (D28): one key per line. The first key encrypts.

import { Buffer } from 'node:buffer'

export type RingKey = { readonly id: string; readonly key: Uint8Array }

const LINE = /^([a-z0-9]{1,32})\s+([A-Za-z0-9+/]{43}=)$/

/** Throws with the number of the invalid line, never with its content. */
export function readKeyRing(text: string): RingKey[] {
  const keys: RingKey[] = []
  for (const [i, line] of text.split('\n').entries()) {
    const trimmed = line.trim()
    if (trimmed === '' || trimmed.startsWith('#')) continue
    const [, id = '', base64 = ''] = LINE.exec(trimmed) ?? []
    if (id === '') throw new Error(`line ${i + 1} of the key ring must be an id and a base64-encoded key of 32 bytes`)
    if (keys.some(key => key.id === id)) throw new Error(`line ${i + 1} of the key ring has the duplicate id ${id}`)
    keys.push({ id, key: Buffer.from(base64, 'base64') })
  }
  if (keys.length === 0) throw new Error('the key ring contains no key')
  return keys
}

/** A new ring, or `older` with a new first key, which encrypts from now on. */
export function makeKeyRing(random: (size: number) => Uint8Array, older = ''): string {
  const id = Buffer.from(random(6)).toString('hex')
  const key = Buffer.from(random(32)).toString('base64')
  const kept = older.split('\n').filter(line => line.trim() !== '' && !line.startsWith('#'))
  const lines = [
    '# Decrypts every secret stored here. The first key encrypts; all keys decrypt.',
    `${id} ${key}`,
    ...kept,
  ]
  return `${lines.join('\n')}\n`
}
