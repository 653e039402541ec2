// Bytes of YAML, of which JSON is a part, to JSON values. Apart from codec.ts, because the library behind it is a fifth of a
// server's start: who may never need it loads this when it does.
import { type Decoded, decodeText } from './codec.ts'
import type { ReadOptions } from './json-reader.ts'
import { readYaml } from './yaml-reader.ts'

/** Throws DecodeError. */
export const decodeYaml = (bytes: Uint8Array, options: ReadOptions = {}): Decoded =>
  readYaml(decodeText(bytes), options)

/** The same for a file that somebody wrote: `duplicates` have line and column, as everything else that is wrong with one. Throws DecodeError. */
export function decodeYamlFile(bytes: Uint8Array): Decoded {
  const { value, repeated } = readYaml(decodeText(bytes))
  return { value, duplicates: repeated.map(one => `line ${one.line}, column ${one.column}: ${one.message}`) }
}
