// YAML for the editor, with the server's rules for reading it.

import { stringify } from 'yaml'
import { isObject, type JsonObject } from '../../api/object.ts'
import { decodeYaml } from '../../api/yaml-codec.ts'
import { MAX_FILE_CHARACTERS } from '../../api/yaml-reader.ts'
import { fieldText } from '../text/fields.ts'

export const toYaml = (object: unknown): string => stringify(object, { lineWidth: 0, aliasDuplicateObjects: false })

export type Parsed = { readonly object: JsonObject } | { readonly problem: string }

export function fromYaml(text: string): Parsed {
  try {
    const { value, duplicates } = decodeYaml(new TextEncoder().encode(text), { maxCharacters: MAX_FILE_CHARACTERS })
    if (duplicates.length) return { problem: duplicates.join('\n') }
    return isObject(value) ? { object: value } : { problem: fieldText.notAnObject }
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) }
  }
}
