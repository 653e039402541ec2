// The lines of a YAML text whose fields others manage.

import { type ConfigText, readConfigText } from '../../api/yaml-source.ts'
import { type Manager, placeOf } from './owners.ts'

/** Names of the managers other than `self`, by line of the text. A text that is not YAML has none. */
export function linesOf(
  managers: readonly Manager[],
  text: string,
  self: string,
): ReadonlyMap<number, readonly string[]> {
  const lines = new Map<number, readonly string[]>()
  const source = read(text)
  if (!source) return lines
  for (const { name, fields } of managers)
    for (const field of name === self ? [] : fields) {
      const place = placeOf(source.value, field)
      if (!place) continue
      const { line } = typeof place.at(-1) === 'number' ? source.positionOf(place) : source.positionOfKey(place)
      lines.set(line, [...new Set([...(lines.get(line) ?? []), name])])
    }
  return lines
}

function read(text: string): ConfigText | undefined {
  try {
    return readConfigText(new TextEncoder().encode(text))
  } catch {
    return undefined
  }
}
