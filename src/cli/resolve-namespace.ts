// The namespace that goes with a kind and the flags that were given. Every command on objects asks.

import type { Kind } from '../api/kind.ts'
import { UsageError } from '../host/command.ts'
import type { Session } from './session.ts'

type Place = { readonly project?: string | undefined; readonly namespace?: string | undefined }

/** Secrets of a project live in its namespace (D30). Throws UsageError where another one is named beside it. */
export function namespaceFor(kind: Kind, flags: Place, usual: string): string {
  if (!kind.namespaced) return ''
  if (flags.project !== undefined) {
    const own = `p-${flags.project}`
    if (flags.namespace === undefined || flags.namespace === own) return own
    throw new UsageError([
      `--project ${flags.project} is the namespace ${own}, and -n says ${flags.namespace}: leave out one of them`,
    ])
  }
  return flags.namespace ?? usual
}

/** Where something is taken away, for whoever is asked: ` in namespace N on SERVER`. */
export const placeText = ({ server }: Pick<Session, 'server'>, namespace: string) =>
  `${namespace && ` in namespace ${namespace}`} on ${server}`
