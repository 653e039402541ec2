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

const heading = '# Decrypts every secret stored here. The first key encrypts; all keys decrypt.'
const linesIn = (ring: string) => ring.split('\n').filter(line => line.trim() !== '' && !line.startsWith('#'))
const newLine = (random: (size: number) => Uint8Array) =>
  `${Buffer.from(random(6)).toString('hex')} ${Buffer.from(random(32)).toString('base64')}`

/** A new ring, or `older` with a new first key, which encrypts from now on. */
export function makeKeyRing(random: (size: number) => Uint8Array, older = ''): string {
  return `${[heading, newLine(random), ...linesIn(older)].join('\n')}\n`
}

/** The ring with a new last key, which only decrypts: for replicas, which all need a key before one of them encrypts with it. */
export function addLastKey(random: (size: number) => Uint8Array, ring: string): string {
  const line = newLine(random)
  return `${[heading, ...linesIn(ring), `${nextMark}${line.split(' ')[0]}`, line].join('\n')}\n`
}

const nextMark = '# Next key: '

/** The id of the key that `addLastKey` added and that is not the first yet. */
export const nextKeyIn = (ring: string): string | undefined => /^# Next key: ([a-z0-9]{1,32})$/m.exec(ring)?.[1]

/** The ring with this key as the first. */
export function withFirstKey(id: string, ring: string): string {
  const lines = linesIn(ring)
  const isFirst = (line: string) => line.trim().startsWith(`${id} `) || line.trim().startsWith(`${id}\t`)
  return `${[heading, ...lines.filter(isFirst), ...lines.filter(line => !isFirst(line))].join('\n')}\n`
}
