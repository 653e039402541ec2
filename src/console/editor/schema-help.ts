// Help while typing YAML: the fields that the schema of the kind allows at this place.

import type { Completion, CompletionContext, CompletionResult } from '@codemirror/autocomplete'
import type { Kind } from '../../api/kind.ts'
import type { Schema } from '../../api/schema.ts'
import { fieldText } from '../text/fields.ts'

const metadata: Schema = {
  type: 'object',
  properties: {
    name: { type: 'string', description: fieldText.name },
    namespace: { type: 'string', description: fieldText.namespace },
    labels: { type: 'object', description: fieldText.labels },
    annotations: { type: 'object', description: fieldText.annotations },
  },
}

const indentOf = (line: string) => /^[\s-]*/.exec(line)?.[0].length ?? 0

/** The keys above a line, from the root: `spec`, `scope`. */
export function pathAt(lines: readonly string[], index: number): string[] {
  const path: string[] = []
  let indent = indentOf(lines[index] ?? '')
  for (let at = index - 1; at >= 0 && indent > 0; at--) {
    const line = lines[at] ?? ''
    const [, key] = /^[\s-]*([\w.-]+):\s*$/.exec(line) ?? []
    if (key !== undefined && indentOf(line) < indent) {
      path.unshift(key)
      indent = indentOf(line)
    }
  }
  return path
}

function schemaAt(kind: Kind, path: readonly string[]): Schema | undefined {
  let schema: Schema | undefined = { type: 'object', properties: { ...kind.fields, metadata } }
  for (const key of path) {
    schema = schema?.properties?.[key]
    if (schema?.type === 'array') schema = schema.items
  }
  return schema
}

export const completeFor =
  (kind: Kind) =>
  (context: CompletionContext): CompletionResult | null => {
    const { state, pos } = context
    const line = state.doc.lineAt(pos)
    const typed = /^[\s-]*([\w]*)$/.exec(line.text.slice(0, pos - line.from))
    if (!typed || (!context.explicit && typed[1] === '')) return null
    const lines = state.doc.toString().split('\n')
    const properties = schemaAt(kind, pathAt(lines, line.number - 1))?.properties ?? {}
    const options: Completion[] = Object.entries(properties)
      .filter(([, schema]) => !schema['x-internal'])
      .map(([label, { type = '', description = '' }]) => ({
        label,
        type: 'property',
        detail: type,
        info: description,
        apply: type === 'object' || type === 'array' ? `${label}:\n` : `${label}: `,
      }))
    return options.length ? { from: pos - (typed[1]?.length ?? 0), options } : null
  }
