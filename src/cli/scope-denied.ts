// Refusals because of a key's scope. The causes of the Status name the key and its owner; for "who am I" they also hold the scope (D25).

import { ApiError } from '../api/errors.ts'
import { isObject, type Json, type JsonObject } from '../api/object.ts'
import type { Io } from '../host/command.ts'
import { reviewSelf } from './access/review-self.ts'
import type { Session } from './session.ts'

export type Refused = {
  readonly user: string
  readonly key: string
  /** Absent where the server does not tell, as one does that is older than this program. */
  readonly told?: {
    readonly scope: JsonObject
    /** Seconds; undefined: never. */
    readonly endsIn: number | undefined
  }
}

/** undefined where it is no refusal because of the key's scope. */
export function refusedScope(error: unknown): Refused | undefined {
  if (!(error instanceof ApiError) || error.code !== 403) return undefined
  const messageOf = causesOf(error)
  const [denied, user, key] = ['KeyScopeDenied', 'KeyOwner', 'KeyName'].map(messageOf)
  if (denied === undefined || typeof user !== 'string' || typeof key !== 'string') return undefined
  const told = toldIn(messageOf)
  return { user, key, ...(told ? { told } : {}) }
}

type MessageOf = (reason: string) => unknown

function causesOf({ status }: ApiError): MessageOf {
  const causes: unknown = status.details?.causes
  const all: readonly { readonly reason?: unknown; readonly message?: unknown }[] = Array.isArray(causes) ? causes : []
  return reason => all.find(cause => cause?.reason === reason)?.message
}

function toldIn(messageOf: MessageOf): Refused['told'] {
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

/** After an answer with nothing in it: one whose key is too narrow to ask who it is may not be shown what is there. */
export async function tellOfScope(io: Io, { resources }: Session): Promise<void> {
  const refused = await reviewSelf(resources).then(() => undefined, refusedScope)
  if (refused) io.err(`The scope of access key "${refused.key}" may hide some: it is shown what the scope covers.\n`)
}
