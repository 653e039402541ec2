// Decides which responses count as a read of the data of their objects (D35).

import type { Kind } from '../api/kind.ts'
import type { Document } from '../api/resources.ts'
import type { Exchange } from '../serving/exchange.ts'
import type { View } from './negotiate.ts'
import { omitsData } from './omit-data.ts'
import type { ResourceInfo } from './request-info.ts'
import { includeOf } from './table.ts'

type Options = { readonly noteRead: (kind: Kind, document: Document) => void }

/** undefined: the kind does not record reads, or the response does not show the data. */
export function noteOf({ noteRead }: Options, exchange: Exchange, info: ResourceInfo, { as }: View) {
  const { kind, subresource } = info
  const isWhole = as === 'object' || (as === 'Table' && includeOf(exchange.query) === 'Object')
  const isRead = kind.keepsLastRead && isWhole && subresource !== 'lastread' && !omitsData(exchange, info)
  return isRead ? (document: Document) => noteRead(kind, document) : undefined
}
