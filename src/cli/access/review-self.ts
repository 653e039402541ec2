// Asks the server for the caller's user, groups and key.

import type { Resources } from '../../api/resources.ts'
import { SelfSubjectReview } from '../../kinds/self-reviews.ts'

type UserInfo = {
  readonly username?: string
  readonly groups?: readonly string[]
  readonly extra?: { readonly [name: string]: readonly string[] }
}
export type Self = UserInfo &
  Required<Pick<UserInfo, 'groups' | 'extra'>> & {
    readonly keyName: string | undefined
    /** The scope of the key as JSON; undefined: none. */
    readonly scope: string | undefined
  }

export async function reviewSelf(resources: Pick<Resources, 'create'>): Promise<Self> {
  const { object } = await resources.create(SelfSubjectReview, '', {})
  const { groups = [], extra = {}, ...info } = (object.status?.['userInfo'] ?? {}) as UserInfo
  const [keyName] = extra['authentication.platform.sh/key'] ?? []
  const [scope] = extra['authentication.platform.sh/scope'] ?? []
  return { ...info, groups, extra, keyName, scope }
}
