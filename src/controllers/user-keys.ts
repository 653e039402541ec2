// Deletes the access keys of deleted Users, and the sessions of disabled ones (D63). They are invalid from the deletion on, also if the server stops before it deletes them.

import { ignoreConflict } from '../api/errors.ts'
import type { Resources } from '../api/resources.ts'
import { OwnedAccessKey } from '../kinds/owned-access-key.ts'
import { User } from '../kinds/user.ts'
import { UsernameRecord } from '../kinds/username-record.ts'
import { mentions } from '../reconcile/document-words.ts'
import { startInformer } from '../reconcile/informer.ts'
import { startLoop } from '../reconcile/work-queue.ts'

export type UserKeysOptions = {
  readonly resources: Resources
  /** The keys of deleted Users with this username, and the sessions of a disabled one. */
  readonly leftOverKeys: (username: string) => readonly { readonly uid: string; readonly name: string }[]
  readonly failed: (what: string, error: unknown) => void
}

export function startUserKeys({ resources, leftOverKeys, failed }: UserKeysOptions): {
  readonly ready: Promise<void>
  idle(): Promise<void>
  stop(): Promise<void>
} {
  const loop = startLoop({
    reconcile: async username => {
      for (const { uid, name } of leftOverKeys(username))
        await resources
          .delete(OwnedAccessKey, { namespace: '', name }, { preconditions: { uid } })
          .catch(ignoreConflict)
      return undefined
    },
    failed: (username, error) => failed(`deleting the access keys of user "${username}"`, error),
  })
  const records = startInformer({
    resources,
    kind: UsernameRecord,
    counts: mentions('deletedAt'),
    keep: ({ spec }) => String(spec?.['username'] ?? ''),
    changed: (_, username) => {
      if (username !== undefined) loop.add(username)
    },
    failed: error => failed('watching usernames', error),
  })
  const disabled = startInformer({
    resources,
    kind: User,
    counts: mentions('disabled'),
    keep: ({ spec }) => (spec?.['disabled'] === true ? String(spec['username']) : undefined),
    changed: (_, username) => {
      if (username !== undefined) loop.add(username)
    },
    failed: error => failed('watching users', error),
  })
  return {
    ready: Promise.all([records.ready, disabled.ready]).then(() => {}),
    idle: loop.idle,
    async stop() {
      records.stop()
      disabled.stop()
      await loop.stop()
    },
  }
}
