// Whether a key that is to go is the one that one is signed in with, and the last of its owner. `platform delete` says so before it asks.

import type { Resource } from '../api/object.ts'
import { listAll } from '../client/follow.ts'
import { OwnedAccessKey } from '../kinds/owned-access-key.ts'
import { SelfSubjectReview } from '../kinds/reviews.ts'
import { expiryOf } from './key-facts.ts'
import { refusedScope } from './refused.ts'
import type { Session } from './session.ts'

type UserInfo = { readonly username?: string; readonly extra?: { readonly [name: string]: readonly string[] } }

/** Empty where it is not, or where this key may not ask: a warning that cannot be had is no reason not to go on. */
export async function ownKeyWarning({ resources }: Session, names: readonly string[], now: number): Promise<string> {
  const { username, own } = await resources.create(SelfSubjectReview, '', {}).then(
    ({ object }) => {
      const { username, extra } = (object.status?.['userInfo'] ?? {}) as UserInfo
      return { username, own: extra?.['authentication.platform.sh/key']?.[0] }
    },
    error => {
      const refused = refusedScope(error)
      return { username: refused?.user, own: refused?.key }
    },
  )
  if (own === undefined || !names.includes(own)) return ''
  const text = 'it is the key that you are signed in with'
  const keys = await Array.fromAsync(listAll(resources, OwnedAccessKey)).catch(() => undefined)
  if (!keys?.some(({ metadata }) => metadata.name === own)) return text
  const left = keys.filter(key => isOf(key, username) && isAlive(key, now) && !names.includes(key.metadata.name ?? ''))
  return left.length ? text : `${text}, and the last one of ${username}`
}

const isOf = ({ spec }: Resource, username: string | undefined) =>
  username !== undefined && (spec?.['user'] === username || `platform:team:${spec?.['team']}` === username)

function isAlive(key: Resource, now: number): boolean {
  const expiry = expiryOf(key)
  return key.spec?.['disabled'] !== true && (expiry === undefined || expiry > now)
}
