// A label selector said for the other side: keys, and in single-namespace mode the namespace. Called for `labels` patches.

import { emptyMap, isObject, type Json, type JsonObject } from '../../api/object.ts'
import { hostLabelKey, MARK } from '../sync/names.ts'
import type { Direction, Naming } from './reference.ts'

/** All namespaces of a virtual cluster share one on the host, so a selector must also say which one it means. */
const own = { managedBy: `${MARK}managed-by`, namespace: `${MARK}namespace` }

export type SelectorOptions = Naming & { readonly direction: Direction; readonly virtualValue: Json | undefined }

/** Both shapes: `{ matchLabels, matchExpressions }`, and the plain map that a Service has. */
export function rewriteSelector(value: Json, options: SelectorOptions): { value: Json } | { skipped: string } {
  if (!isObject(value)) return { skipped: 'is no map, so no label selector' }
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

/** A hashed key tells nothing about what it was made from; the virtual object's own selector does. */
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
