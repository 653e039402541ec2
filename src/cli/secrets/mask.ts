// Takes secret values out of what a program prints, wherever its chunks end. run.ts puts it between.

import type { Through } from '../../host/machine.ts'

const stars = Buffer.from('***')
/** A shorter value would blacken half of any text, and is no secret. */
export const shortest = 4

/** The names of those that stay as they are, line breaks at their ends aside; what is empty has nothing to show. */
export const unmasked = (values: ReadonlyMap<string, Uint8Array>): string[] =>
  [...values].flatMap(([name, value]) => {
    const { length } = Buffer.from(value).toString('latin1').trimEnd()
    return length > 0 && length < shortest ? [name] : []
  })

/** Values as they are, without the line break at their end, and line by line: tools print them so. */
export function maskOf(values: Iterable<Uint8Array>): Through {
  const wanted = [...values].flatMap(value => {
    const text = Buffer.from(value)
    const lines = text
      .toString('latin1')
      .split(/\r?\n/)
      .map(line => Buffer.from(line, 'latin1'))
    return [text, ...lines]
  })
  const needles = wanted.filter(one => one.length >= shortest).toSorted((a, b) => b.length - a.length)
  let held = Buffer.alloc(0)
  return chunk => {
    const bytes = chunk ? Buffer.concat([held, chunk]) : held
    const parts: Buffer[] = []
    let at = 0
    for (;;) {
      const next = firstOf(bytes, needles, at)
      if (!next) break
      parts.push(bytes.subarray(at, next.at), stars)
      at = next.at + next.length
    }
    // What may be the beginning of a value waits for the rest of it.
    const keep = chunk ? beginningAtEnd(bytes.subarray(at), needles) : 0
    parts.push(bytes.subarray(at, bytes.length - keep))
    held = bytes.subarray(bytes.length - keep)
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
