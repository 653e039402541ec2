// Finds out who the caller is: user, teams, key, scope and expiry.

import { ApiError } from '../../api/errors.ts'
import type { Kind } from '../../api/kind.ts'
import type { Json, Resource } from '../../api/object.ts'
import { OwnedAccessKey } from '../../kinds/owned-access-key.ts'
import { Team } from '../../kinds/team.ts'
import { reviewSelf } from '../access/review-self.ts'
import { expiryOf, expiryText, lifetimeText, scopeText } from '../keys/key-summary.ts'
import { span } from '../print.ts'
import type { Session } from '../session.ts'

export type Identity = {
  readonly user: string
  readonly groups: readonly string[]
  readonly teams: readonly { readonly name: string; readonly because: string }[]
  readonly key?: {
    readonly name: string
    readonly scope: string
    readonly expires: string
    readonly expiresAt?: string
  }
  /** Of a signed-in person. */
  readonly session?: { readonly provider: string }
}

const ofTeam = 'key of the team'
const everything = 'all permissions of its owner'

export async function identityOf({ resources }: Session, now: number): Promise<Identity> {
  const { username = '', groups, extra, keyName } = await reviewSelf(resources)
  const read = (kind: Kind, name: string) =>
    resources.get(kind, { namespace: '', name }).then(
      found => found.object,
      error => {
        if (error instanceof ApiError && [403, 404].includes(error.code)) return undefined
        throw error
      },
    )
  const names = groups
    .filter(group => group.startsWith('platform:team:'))
    .map(group => group.slice('platform:team:'.length))
  const [key, ...teams] = await Promise.all([
    keyName === undefined ? undefined : read(OwnedAccessKey, keyName),
    ...names.map(async name => ({
      name,
      because:
        username === `platform:team:${name}` ? ofTeam : membershipReason(await read(Team, name), username, groups),
    })),
  ])
  // Older servers report no expiry, so compute it from the object.
  const details = key && !extra[endsIn] ? describeObject(key, now) : describeExtra(extra, now)
  const provider = key && (await providerOf(key, read))
  // The server reports the time until a session ends if nobody uses it.
  const expires = key && provider !== undefined ? { expires: lifetimeText(key, now) } : {}
  return {
    user: username,
    groups,
    teams,
    ...(keyName === undefined ? {} : { key: { name: keyName, ...details, ...expires } }),
    ...(provider === undefined ? {} : { session: { provider } }),
  }
}

/** The session of a command line has its identity in the session of the browser that confirmed it. */
async function providerOf(key: Resource, read: (kind: Kind, name: string) => Promise<Resource | undefined>) {
  const { type, identity, parent } = (key.spec ?? {}) as KeySpec
  if (type !== 'Login') return undefined
  const login = identity === undefined && parent !== undefined ? await read(OwnedAccessKey, parent) : key
  return (login?.spec as KeySpec | undefined)?.identity?.connector
}

type KeySpec = { readonly type?: string; readonly identity?: { readonly connector?: string }; readonly parent?: string }

const endsIn = 'authentication.platform.sh/key-ends-in'

/** Prefers what the server reports: it knows which secret of a rotated key is in use, and not every key may read its own object. */
function describeExtra(extra: { readonly [name: string]: readonly string[] }, now: number) {
  const [scope] = extra['authentication.platform.sh/scope'] ?? []
  const [left] = extra[endsIn] ?? []
  return describeKey(
    scope === undefined ? undefined : JSON.parse(scope),
    left === undefined ? undefined : Number(left),
    now,
  )
}

const describeKey = (scope: Json | undefined, endsIn: number | undefined, now: number) => ({
  scope: scopeText(scope) ?? everything,
  expires: endsIn === undefined ? 'never' : `in ${span(endsIn)}`,
  ...(endsIn === undefined ? {} : { expiresAt: new Date(now + endsIn * 1000).toISOString() }),
})

function describeObject(key: Resource, now: number) {
  const at = expiryOf(key)
  return {
    scope: scopeText(key.spec?.['scope']) ?? everything,
    expires: expiryText(key, now),
    ...(at === undefined ? {} : { expiresAt: new Date(at).toISOString() }),
  }
}

function membershipReason(team: Resource | undefined, user: string, groups: readonly string[]): string {
  const { users = [], groups: shared = [] } = (team?.spec ?? {}) as { users?: string[]; groups?: string[] }
  if (users.includes(user)) return 'listed by name'
  const group = shared.find(one => groups.includes(one))
  return group === undefined ? 'reported by the server' : `through group ${group}`
}
