// The error for a credential that is known and no longer valid. The audit log names its user; the response does not.

import { ApiError } from '../../api/errors.ts'

/** `key`: the name of an access key; absent for a token. */
type Holder = { readonly username: string; readonly key?: string }

export class RejectedCredential extends ApiError {
  readonly holder: Holder
  constructor(message: string, holder: Holder) {
    super(401, 'Unauthorized', message)
    this.holder = holder
  }
}
