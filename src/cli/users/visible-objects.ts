// Lists objects about a user, and warns about kinds that the caller may not list.

import { ApiError } from '../../api/errors.ts'
import type { Kind } from '../../api/kind.ts'
import type { Resource } from '../../api/object.ts'
import { listAll } from '../../client/list-watch.ts'
import type { Io } from '../../host/command.ts'
import { OwnedAccessKey } from '../../kinds/owned-access-key.ts'
import { selectField } from '../select-field.ts'
import type { Session } from '../session.ts'

export type Viewer = { readonly io: Io; readonly session: Session }

export async function* visibleObjects(
  { io, session }: Viewer,
  kind: Kind,
  fieldSelector?: string,
): AsyncGenerator<Resource> {
  try {
    yield* listAll(session.resources, kind, fieldSelector === undefined ? {} : { fieldSelector })
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 403) throw error
    io.err(`platform: warning: you may not list ${kind.plural}: ${error.message}\n`)
  }
}

/** Without sessions, because the server deletes those of a disabled user. */
export async function visibleKeys(viewer: Viewer, username: string): Promise<Resource[]> {
  const keys = await Array.fromAsync(visibleObjects(viewer, OwnedAccessKey, selectField('spec.user', username)))
  return keys.filter(({ spec }) => spec?.['type'] !== 'Login')
}
