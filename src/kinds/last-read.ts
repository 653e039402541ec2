// Records when somebody last read a secret, in a table of its own: a column and a subresource show it, the object does not (D19, D35).

import type { Column, Subresource } from '../api/kind.ts'
import { timestamp } from '../api/object.ts'
import { time } from '../api/schema.ts'

/** Earlier releases showed the last read in the status. Manifests that were exported from them are still accepted. */
export const formerLastRead = time('Ignored. The subresource lastread shows the last read.', { deprecated: true })

/** The handler is in src/admission/secret-last-read.ts. */
export const lastread: Subresource = { verb: 'get', kind: 'SecretLastRead' }

/** The key of the stored time. */
export const readId = (uid: string) => `${uid}/read`

/** A time and not an age, so that clients can find unused secrets without reading them. */
export const lastReadColumn: Column = {
  name: 'Last-Read',
  type: 'string',
  description: 'Last time somebody read the data.',
  priority: 1,
  value: ({ metadata }, lastActivity) => {
    const read = lastActivity?.(readId(metadata.uid ?? ''))
    return read === undefined ? 'never' : timestamp(read)
  },
}
