// Encodes continue tokens: the snapshot of a list, and the last object of the page.
// Tokens are opaque to clients.

import { badRequest } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import type { Ref } from '../api/object.ts'

/** Revision -1: the snapshot has expired, so continue with the current state. */
export type Position = { readonly revision: number; readonly after: Ref }

export function writeToken(kind: Kind, position: Position): string {
  const { namespace, name } = position.after
  return Buffer.from(
    JSON.stringify({ v: 'meta.k8s.io/v1', rv: position.revision, kind: kind.id, start: [namespace, name] }),
  ).toString('base64url')
}

/** Rejects tokens of other kinds, tokens of other servers and malformed tokens with the same error. */
export function readToken(kind: Kind, token: string): Position {
  const value = token.length <= 2048 ? decode(token) : undefined
  const [namespace, name] = Array.isArray(value?.start) ? value.start : []
  if (
    value?.v !== 'meta.k8s.io/v1' ||
    value.kind !== kind.id ||
    typeof namespace !== 'string' ||
    typeof name !== 'string' ||
    !isRevision(value.rv)
  )
    throw badRequest(
      'invalid continue token: continue key is not valid; start a new list without the continue parameter',
    )
  return { revision: value.rv as number, after: { namespace, name } }
}

const isRevision = (value: unknown) => Number.isSafeInteger(value) && ((value as number) > 0 || value === -1)

function decode(token: string): { v?: unknown; rv?: unknown; kind?: unknown; start?: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(token, 'base64url').toString())
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}
