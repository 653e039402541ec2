// The subresource `history` of secrets, as discovery shows it (D35). Its handler is src/admission/secret-history.ts.

import type { Subresource } from '../api/kind.ts'

export const history: Subresource = { verb: 'get', kind: 'SecretHistory', hasParts: true }
