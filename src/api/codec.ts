// Decodes request bodies and files to JSON values. yaml-codec.ts reads YAML.
import { DecodeError, type ReadOptions, readJson } from './json-reader.ts'
import type { Json } from './object.ts'

/** `duplicates`: warnings for the client. */
export type Decoded = { readonly value: Json; readonly duplicates: readonly string[] }

/** Throws DecodeError. */
export function decode(bytes: Uint8Array, options: ReadOptions = {}): Decoded {
  const { value, duplicates } = readJson(decodeText(bytes), options)
  return { value, duplicates: duplicates.map(path => `duplicate field "${path}"`) }
}

/** Throws DecodeError. */
export function decodeText(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    // Everything before the first invalid byte decodes, so its length is the position.
    const fine = new TextDecoder().decode(bytes).split('\uFFFD', 1)[0] ?? ''
    const lines = fine.split('\n')
    throw new DecodeError('the text is not valid UTF-8', lines.length, (lines.at(-1)?.length ?? 0) + 1)
  }
}

export { canonical, writeYaml } from './encode.ts'
