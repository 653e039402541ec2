// Translates label selectors between the virtual cluster and the host.

import { emptyMap, isObject, type Json, type JsonObject } from '../../api/object.ts'
import { hostLabelKey, METADATA_PREFIX } from '../sync/names.ts'
import type { Direction, Naming } from './reference.ts'

/** In single-namespace mode, a selector must also select the virtual cluster and namespace. */
const own = { managedBy: `${METADATA_PREFIX}managed-by`, namespace: `${METADATA_PREFIX}namespace` }

export type SelectorOptions = Naming & { readonly direction: Direction; readonly virtualValue: Json | undefined }

/** Supports `{ matchLabels, matchExpressions }` and the plain map of a Service. */
export function rewriteSelector(value: Json, options: SelectorOptions): { value: Json } | { skipped: string } {
  if (!isObject(value)) return { skipped: 'is not a map, so not a label selector' }
  const isPlain = !isObject(value['matchLabels']) && !Array.isArray(value['matchExpressions'])
  const rename = renaming(options)
  if (isPlain) return { value: rewriteLabels(value, options, rename) }
  const labels = rewriteLabels(isObject(value['matchLabels']) ? value['matchLabels'] : {}, options, rename)
  const { matchLabels: _, matchExpressions: expressions, ...rest } = value
  return {
    value: {
      ...rest,
      ...(Object.keys(labels).length > 0 && { matchLabels: labels }),
      ...(Array.isArray(expressions) && { matchExpressions: expressions.map(one => renameKey(one, rename)) }),
    },
  }
}

function rewriteLabels(labels: JsonObject, options: SelectorOptions, rename: (key: string) => string): JsonObject {
  const { direction, multiNamespace, vcluster, namespace } = options
  const next = emptyMap()
  for (const [key, value] of Object.entries(labels))
    if (direction === 'toHost' || (key !== own.managedBy && key !== own.namespace)) next[rename(key)] = value
  if (direction === 'toHost' && !multiNamespace) {
    next[own.managedBy] = vcluster.name
    next[own.namespace] = namespace
  }
  return next
}

/** Reverses hashed keys with the selector of the virtual object. */
function renaming({ direction, vcluster, virtualValue }: SelectorOptions): (key: string) => string {
  if (direction === 'toHost') return key => hostLabelKey(key, vcluster.name)
  const known = new Map(keysOf(virtualValue).map(key => [hostLabelKey(key, vcluster.name), key]))
  return key => known.get(key) ?? key
}

function keysOf(value: Json | undefined): string[] {
  if (!isObject(value)) return []
  const { matchLabels: labels, matchExpressions: expressions } = value
  const inside = Array.isArray(expressions) ? expressions : []
  const named = inside.flatMap(one => (isObject(one) && typeof one['key'] === 'string' ? [one['key']] : []))
  return [...Object.keys(value), ...(isObject(labels) ? Object.keys(labels) : []), ...named]
}

function renameKey(expression: Json, rename: (key: string) => string): Json {
  if (!isObject(expression) || typeof expression['key'] !== 'string') return expression
  return { ...expression, key: rename(expression['key']) }
}
