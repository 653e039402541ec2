// Recognises errors caused by the scope of the access key. Causes of the Status name the key, its owner and its scope (D25).

import { ApiError } from '../api/errors.ts'
import { isObject, type Json, type JsonObject } from '../api/object.ts'
import type { Io } from '../host/command.ts'
import { reviewSelf } from './access/review-self.ts'
import type { Session } from './session.ts'

export type ScopeDenial = {
  readonly user: string
  readonly key: string
  /** Absent if the server does not report it, as older versions do not. */
  readonly keyDetails?: {
    readonly scope: JsonObject
    /** Seconds; undefined: never. */
    readonly endsIn: number | undefined
  }
}

/** Returns undefined for any other error. */
export function scopeDenialOf(error: unknown): ScopeDenial | undefined {
  if (!(error instanceof ApiError) || error.code !== 403) return undefined
  const messageOf = causesOf(error)
  const [denied, user, key] = ['KeyScopeDenied', 'KeyOwner', 'KeyName'].map(messageOf)
  if (denied === undefined || typeof user !== 'string' || typeof key !== 'string') return undefined
  const keyDetails = keyDetailsIn(messageOf)
  return { user, key, ...(keyDetails ? { keyDetails } : {}) }
}

type MessageOf = (reason: string) => unknown

function causesOf({ status }: ApiError): MessageOf {
  const causes: unknown = status.details?.causes
  const all: readonly { readonly reason?: unknown; readonly message?: unknown }[] = Array.isArray(causes) ? causes : []
  return reason => all.find(cause => cause?.reason === reason)?.message
}

function keyDetailsIn(messageOf: MessageOf): ScopeDenial['keyDetails'] {
  const scope = scopeIn(messageOf('KeyScope'))
  const left = messageOf('KeyEndsIn')
  const endsIn = left === undefined ? undefined : Number(left)
  return scope && (endsIn === undefined || Number.isFinite(endsIn)) ? { scope, endsIn } : undefined
}

function scopeIn(text: unknown): JsonObject | undefined {
  try {
    const scope = JSON.parse(String(text)) as Json
    return isObject(scope) ? scope : undefined
  } catch {
    return undefined
  }
}

/** Call after an empty list: a narrowly scoped key may not see the objects that exist. */
export async function warnScopeMayHide(io: Io, { resources }: Session): Promise<void> {
  const denial = await reviewSelf(resources).then(() => undefined, scopeDenialOf)
  if (denial) io.err(`The scope of access key "${denial.key}" may hide objects.\n`)
}
