// The namespace that goes with a kind and the flags that were given. Every command on objects asks.

import type { Kind } from '../api/kind.ts'

type Place = { readonly project?: string | undefined; readonly namespace?: string | undefined }

/** Secrets of a project live in its namespace (D30). */
export function namespaceFor(kind: Kind, flags: Place, usual: string): string {
  if (!kind.namespaced) return ''
  if (flags.project !== undefined) return `p-${flags.project}`
  return flags.namespace ?? usual
}
