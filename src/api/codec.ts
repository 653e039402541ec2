// Bytes to JSON values and back, in JSON and YAML; everybody who reads or writes a body calls it.
import { DecodeError, readJson } from './json-reader.ts'
import type { Json } from './object.ts'
import { readYaml } from './yaml-reader.ts'

export type Format = 'json' | 'yaml'

/** Throws DecodeError. `duplicates` are warnings as they go to the client. */
export function decode(bytes: Uint8Array, format: Format): { value: Json; duplicates: readonly string[] } {
  const text = decodeText(bytes)
  if (format === 'yaml') return readYaml(text)
  const { value, duplicates } = readJson(text)
  return { value, duplicates: duplicates.map(path => `duplicate field "${path}"`) }
}

function decodeText(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    // Everything before the first mistake decodes; its length tells where that is.
    const fine = new TextDecoder().decode(bytes).split('\uFFFD', 1)[0] ?? ''
    const lines = fine.split('\n')
    throw new DecodeError('the text is not valid UTF-8', lines.length, (lines.at(-1)?.length ?? 0) + 1)
  }
}

export { canonical, writeYaml } from './encode.ts'
