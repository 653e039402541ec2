// Recognises errors caused by the scope of the access key, by the cause of the Status (D25).

import { ApiError } from '../api/errors.ts'
import type { Io } from '../host/command.ts'
import { reviewSelf } from './access/review-self.ts'
import type { Session } from './session.ts'

export function isScopeDenial(error: unknown): boolean {
  if (!(error instanceof ApiError) || error.code !== 403) return false
  const causes: unknown = error.status.details?.causes
  const all: readonly { readonly reason?: unknown }[] = Array.isArray(causes) ? causes : []
  return all.some(cause => cause?.reason === 'KeyScopeDenied')
}

/** Call after an empty list: a narrowly scoped key may not see the objects that exist. */
export async function warnScopeMayHide(io: Io, { resources }: Session): Promise<void> {
  const self = await reviewSelf(resources).catch(() => undefined)
  if (self?.scope) io.err(`The scope of access key "${self.keyName}" may hide objects.\n`)
}
