// When somebody last read a secret (D19, D35): kept beside it, under an id of its own, and joined in when it is shown.

import type { Column } from '../api/kind.ts'
import { type Resource, timestamp } from '../api/object.ts'
import { time } from '../api/schema.ts'

export const lastRead = time(
  'When somebody last read it with its data. Metadata, tables and the server itself do not count.',
)

/** What the time is kept under. */
export const readId = (uid: string) => `${uid}/read`

export function joinLastRead<S, T>(
  object: Resource<S, T>,
  lastActivity: (id: string) => number | undefined,
): Resource<S, T> {
  const read = lastActivity(readId(object.metadata.uid ?? ''))
  return read === undefined ? object : { ...object, status: { ...(object.status as T), lastRead: timestamp(read) } }
}

/** As a time, not an age: this is how it is found out what nobody reads, without reading it. */
export const lastReadColumn: Column = {
  name: 'Last-Read',
  type: 'string',
  description: 'When somebody last read it.',
  priority: 1,
  value: ({ status }) => (status?.['lastRead'] as string | undefined) ?? 'never',
}
