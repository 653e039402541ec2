// Decodes YAML, which includes JSON, to JSON values.
// Separate from codec.ts, because loading the YAML library takes a fifth of the server's startup time.
import { type Decoded, decodeText } from './codec.ts'
import { MAX_FILE_CHARACTERS, readYaml, type YamlOptions } from './yaml-reader.ts'

/** Throws DecodeError. */
export const decodeYaml = (bytes: Uint8Array, options: YamlOptions = {}): Decoded =>
  readYaml(decodeText(bytes), options)

/** For configuration files: `duplicates` have line and column, like other errors. Throws DecodeError. */
export function decodeYamlFile(bytes: Uint8Array): Decoded {
  const { value, repeated } = readYaml(decodeText(bytes), { maxCharacters: MAX_FILE_CHARACTERS })
  return { value, duplicates: repeated.map(one => `line ${one.line}, column ${one.column}: ${one.message}`) }
}
