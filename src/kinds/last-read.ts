// Stores when somebody last read a secret, under its own id, and adds it to the status (D19, D35).

import type { Column } from '../api/kind.ts'
import { type Resource, timestamp } from '../api/object.ts'
import { time } from '../api/schema.ts'

export const lastRead = time(
  'Last time somebody read the data. Reads of metadata or tables, and reads by the server, are ignored.',
)

/** The key of the stored time. */
export const readId = (uid: string) => `${uid}/read`

export function joinLastRead<S, T>(
  object: Resource<S, T>,
  lastActivity: (id: string) => number | undefined,
): Resource<S, T> {
  const read = lastActivity(readId(object.metadata.uid ?? ''))
  return read === undefined ? object : { ...object, status: { ...(object.status as T), lastRead: timestamp(read) } }
}

/** A time and not an age, so that clients can find unused secrets without reading them. */
export const lastReadColumn: Column = {
  name: 'Last-Read',
  type: 'string',
  description: 'Last time somebody read the data.',
  priority: 1,
  value: ({ status }) => (status?.['lastRead'] as string | undefined) ?? 'never',
}
