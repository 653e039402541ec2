// Finds out who a new key belongs to, for the context and for the user.

import { ApiError } from '../../api/errors.ts'
import type { Resource } from '../../api/object.ts'
import type { Resources } from '../../api/resources.ts'
import type { Io } from '../../host/command.ts'
import { OwnedAccessKey } from '../../kinds/owned-access-key.ts'
import { reviewSelf } from '../access/review-self.ts'
import { lifetimeText } from '../keys/key-summary.ts'
import { openConnection, type TrustedServer } from '../session.ts'

export type NewIdentity = {
  readonly user?: string
  readonly keyName?: string
  /** Stored for logout, which then needs no request. */
  readonly keyType?: string
  readonly teams: readonly string[]
  /** In words; absent if the key may not read itself. */
  readonly expiry?: string
}

type KeyTarget = TrustedServer & { readonly key: string }

/** A scoped key that may not ask is still valid. */
export async function identify(io: Io, target: KeyTarget): Promise<NewIdentity> {
  const { resources, close } = openConnection(io, target)
  try {
    const { username, groups, keyName } = await reviewSelf(resources)
    const object = keyName === undefined ? undefined : await readKeyObject(resources, keyName)
    return {
      ...(username ? { user: username } : {}),
      ...(keyName ? { keyName } : {}),
      ...(object ? { keyType: String(object.spec?.['type'] ?? 'User'), expiry: expiryIn(object, io.now()) } : {}),
      teams: groups.flatMap(group => (group.startsWith(teamPrefix) ? [group.slice(teamPrefix.length)] : [])),
    }
  } catch (error) {
    if (error instanceof ApiError && error.code === 403) return { teams: [] }
    if (error instanceof ApiError && error.code === 401)
      throw new ApiError(401, 'Unauthorized', `${target.server} rejected the key: ${error.message}`)
    throw error
  } finally {
    close()
  }
}

const teamPrefix = 'platform:team:'

const readKeyObject = (resources: Resources, name: string) =>
  resources.get(OwnedAccessKey, { namespace: '', name }).then(
    ({ object }) => object,
    () => undefined,
  )

function expiryIn(object: Resource, now: number): string {
  const what = object.spec?.['type'] === 'Login' ? 'The session ends' : 'The key expires'
  return `${what} ${lifetimeText(object, now)}.`
}

/** Deletes a key that was just made and will not be used. It expires in any case. */
export async function discardKey(io: Io, target: KeyTarget): Promise<void> {
  const { resources, close } = openConnection(io, target)
  try {
    const { keyName: name } = await reviewSelf(resources)
    if (name !== undefined) await resources.delete(OwnedAccessKey, { namespace: '', name })
  } catch {
    // The error that made the key useless is the one to report.
  } finally {
    close()
  }
}
