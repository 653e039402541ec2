// Which key one is signed in with: where it is to go, `platform delete` says so before it asks, and lets it go last.

import type { Resource } from '../../api/object.ts'
import { listAll } from '../../client/list-watch.ts'
import { OwnedAccessKey } from '../../kinds/owned-access-key.ts'
import { reviewSelf } from '../access/review-self.ts'
import { refusedScope } from '../scope-denied.ts'
import type { Session } from '../session.ts'
import { expiryOf } from './key-summary.ts'

export type OwnKey = { readonly username: string | undefined; readonly own: string | undefined }

/** undefined fields where this key may not ask: what cannot be known is no reason not to go on. */
export const ownKeyOf = ({ resources }: Pick<Session, 'resources'>): Promise<OwnKey> =>
  reviewSelf(resources).then(
    ({ username, keyName }) => ({ username, own: keyName }),
    error => {
      const refused = refusedScope(error)
      return { username: refused?.user, own: refused?.key }
    },
  )

type Going = OwnKey & { readonly names: readonly string[]; readonly now: number }

/** Empty where the own key stays. */
export async function ownKeyWarning({ resources }: Session, { username, own, names, now }: Going): Promise<string> {
  if (own === undefined || !names.includes(own)) return ''
  const text = 'it is the key that you are signed in with'
  const keys = await Array.fromAsync(listAll(resources, OwnedAccessKey)).catch(() => undefined)
  if (!keys?.some(({ metadata }) => metadata.name === own)) return text
  const left = keys.filter(key => isOf(key, username) && isAlive(key, now) && !names.includes(key.metadata.name ?? ''))
  return left.length ? text : `${text}, and the last one of ${username}`
}

/** Whether a key belongs to this user, or to this team. */
export const isOf = ({ spec }: Resource, username: string | undefined) =>
  username !== undefined && (spec?.['user'] === username || `platform:team:${spec?.['team']}` === username)

function isAlive(key: Resource, now: number): boolean {
  const expiry = expiryOf(key)
  return key.spec?.['disabled'] !== true && (expiry === undefined || expiry > now)
}
