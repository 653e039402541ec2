// Masks secret values in the output of a program, across chunk boundaries.

import type { OutputFilter } from '../../host/machine.ts'

const stars = Buffer.from('***')
/** Masking shorter values would garble the output, and they cannot be secret. */
export const shortest = 4

/** Names of values that are too short to mask, ignoring final line breaks. Empty values do not count. */
export const unmasked = (values: ReadonlyMap<string, Uint8Array>): string[] =>
  [...values].flatMap(([name, value]) => {
    const { length } = Buffer.from(value).toString('latin1').trimEnd()
    return length > 0 && length < shortest ? [name] : []
  })

/** Masks whole values and their single lines, because tools print both. */
export function maskOf(values: Iterable<Uint8Array>): OutputFilter {
  const wanted = [...values].flatMap(value => {
    const text = Buffer.from(value)
    const lines = text
      .toString('latin1')
      .split(/\r?\n/)
      .map(line => Buffer.from(line, 'latin1'))
    return [text, ...lines]
  })
  const needles = wanted.filter(one => one.length >= shortest).toSorted((a, b) => b.length - a.length)
  let pending = Buffer.alloc(0)
  return chunk => {
    const bytes = chunk ? Buffer.concat([pending, chunk]) : pending
    const parts: Buffer[] = []
    let at = 0
    for (;;) {
      const next = firstOf(bytes, needles, at)
      if (!next) break
      parts.push(bytes.subarray(at, next.at), stars)
      at = next.at + next.length
    }
    // Hold back a possible start of a value until the next chunk.
    const keep = chunk ? beginningAtEnd(bytes.subarray(at), needles) : 0
    parts.push(bytes.subarray(at, bytes.length - keep))
    pending = bytes.subarray(bytes.length - keep)
    return Buffer.concat(parts)
  }
}

function firstOf(bytes: Buffer, needles: readonly Buffer[], from: number): { at: number; length: number } | undefined {
  let first: { at: number; length: number } | undefined
  for (const needle of needles) {
    const at = bytes.indexOf(needle, from)
    if (at !== -1 && (!first || at < first.at)) first = { at, length: needle.length }
  }
  return first
}

function beginningAtEnd(bytes: Buffer, needles: readonly Buffer[]): number {
  let most = 0
  for (const needle of needles)
    for (let length = Math.min(needle.length - 1, bytes.length); length > most; length--)
      if (bytes.subarray(bytes.length - length).equals(needle.subarray(0, length))) most = length
  return most
}
