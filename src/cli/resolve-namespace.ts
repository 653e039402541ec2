// Resolves the namespace of a kind from flags and context.

import type { Kind } from '../api/kind.ts'
import { UsageError } from '../host/command.ts'
import type { Session } from './session.ts'

type NamespaceFlags = { readonly project?: string | undefined; readonly namespace?: string | undefined }

/** Secrets of project X are in namespace p-X (D30). Throws UsageError if --project and -n disagree. */
export function namespaceFor(kind: Kind, flags: NamespaceFlags, fallback: string): string {
  if (!kind.namespaced) return ''
  if (flags.project !== undefined) {
    const own = `p-${flags.project}`
    if (flags.namespace === undefined || flags.namespace === own) return own
    throw new UsageError([
      `--project ${flags.project} means namespace ${own}, but -n is ${flags.namespace}: remove one of them`,
    ])
  }
  return flags.namespace ?? fallback
}

/** For confirmation questions: ` in namespace N on SERVER`. */
export const locationText = ({ server }: Pick<Session, 'server'>, namespace: string) =>
  `${namespace && ` in namespace ${namespace}`} on ${server}`
