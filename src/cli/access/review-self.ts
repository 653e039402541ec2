// Asks the server for the caller's user, groups and key.

import type { Resources } from '../../api/resources.ts'
import { SelfSubjectReview } from '../../kinds/self-reviews.ts'

type UserInfo = {
  readonly username?: string
  readonly groups?: readonly string[]
  readonly extra?: { readonly [name: string]: readonly string[] }
}
export type Self = UserInfo & Required<Pick<UserInfo, 'groups' | 'extra'>> & { readonly keyName: string | undefined }

/** Throws ApiError 403 if the scope of the key does not allow it. */
export async function reviewSelf(resources: Pick<Resources, 'create'>): Promise<Self> {
  const { object } = await resources.create(SelfSubjectReview, '', {})
  const { groups = [], extra = {}, ...info } = (object.status?.['userInfo'] ?? {}) as UserInfo
  return { ...info, groups, extra, keyName: extra['authentication.platform.sh/key']?.[0] }
}
