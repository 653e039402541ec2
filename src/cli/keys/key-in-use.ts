// Finds the access key in use, to warn before it is deleted.

import type { Resource } from '../../api/object.ts'
import { listAll } from '../../client/list-watch.ts'
import { OwnedAccessKey } from '../../kinds/owned-access-key.ts'
import { reviewSelf } from '../access/review-self.ts'
import type { Session } from '../session.ts'
import { expiryOf } from './key-summary.ts'

export type KeyInUse = { readonly username: string | undefined; readonly own: string | undefined }

/** Fields are undefined if the server does not say: then the command continues without the warning. */
export const keyInUse = ({ resources }: Pick<Session, 'resources'>): Promise<KeyInUse> =>
  reviewSelf(resources).then(
    ({ username, keyName }) => ({ username, own: keyName }),
    () => ({ username: undefined, own: undefined }),
  )

type Deletion = KeyInUse & { readonly names: readonly string[]; readonly now: number }

/** Returns an empty string if the deletion does not include the key in use. */
export async function keyInUseWarning(
  { resources }: Session,
  { username, own, names, now }: Deletion,
): Promise<string> {
  if (own === undefined || !names.includes(own)) return ''
  const text = 'this is the key you are signed in with'
  const keys = await Array.fromAsync(listAll(resources, OwnedAccessKey)).catch(() => undefined)
  if (!keys?.some(({ metadata }) => metadata.name === own)) return text
  const left = keys.filter(
    key => isOwnedBy(key, username) && isAlive(key, now) && !names.includes(key.metadata.name ?? ''),
  )
  return left.length ? text : `${text} and the last key of ${username}`
}

/** Whether a key belongs to this user or team. */
export const isOwnedBy = ({ spec }: Resource, username: string | undefined) =>
  username !== undefined && (spec?.['user'] === username || `platform:team:${spec?.['team']}` === username)

function isAlive(key: Resource, now: number): boolean {
  const expiry = expiryOf(key)
  return key.spec?.['disabled'] !== true && (expiry === undefined || expiry > now)
}
