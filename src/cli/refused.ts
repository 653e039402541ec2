// What a refusal says beside no: the server names who asked and with which key. A key whose scope is too narrow to ask learns it from there (D25).

import { ApiError } from '../api/errors.ts'
import { SelfSubjectReview } from '../kinds/reviews.ts'
import type { Io } from './command.ts'
import type { Session } from './session.ts'

export type Refused = { readonly user: string; readonly key: string }

/** undefined where it is no refusal because of the key's scope. */
export function refusedScope(error: unknown): Refused | undefined {
  if (!(error instanceof ApiError) || error.code !== 403) return undefined
  const [, user, key] =
    /User "(.+)" cannot .*: the scope of access key "(.+)" does not cover it$/.exec(error.message) ?? []
  return user !== undefined && key !== undefined ? { user, key } : undefined
}

/** After an answer with nothing in it: one whose key is too narrow to ask who it is may not be shown what is there. */
export async function tellOfScope(io: Io, { resources }: Session): Promise<void> {
  const refused = await resources.create(SelfSubjectReview, '', {}).then(() => undefined, refusedScope)
  if (refused) io.err(`The scope of access key "${refused.key}" may hide some: it is shown what the scope covers.\n`)
}
