// Decides which responses count as a read of the data of their objects (D35).

import type { Kind } from '../api/kind.ts'
import type { Document } from '../api/resources.ts'
import type { Exchange } from '../serving/exchange.ts'
import type { View } from './negotiate.ts'
import type { ResourceInfo } from './request-info.ts'
import { includeOf } from './table.ts'

type Options = { readonly noteRead: (kind: Kind, document: Document) => void }

/** undefined: the kind does not record reads, or the response does not show the data. */
export function noteOf({ noteRead }: Options, { query }: Exchange, { kind, subresource }: ResourceInfo, { as }: View) {
  const isWhole = as === 'object' || (as === 'Table' && includeOf(query) === 'Object')
  const isRead = kind.keepsLastRead && isWhole && subresource !== 'lastread'
  return isRead ? (document: Document) => noteRead(kind, document) : undefined
}
