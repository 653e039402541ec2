// What a refusal says beside no: the server names who asked and with which key. A key whose scope is too narrow to ask learns it from there (D25).

import { ApiError } from '../api/errors.ts'

export type Refused = { readonly user: string; readonly key: string }

/** undefined where it is no refusal because of the key's scope. */
export function refusedScope(error: unknown): Refused | undefined {
  if (!(error instanceof ApiError) || error.code !== 403) return undefined
  const [, user, key] =
    /User "(.+)" cannot .*: the scope of access key "(.+)" does not cover it$/.exec(error.message) ?? []
  return user !== undefined && key !== undefined ? { user, key } : undefined
}
