// Who one is to the server, with which key and for how long: asked, or learnt from the refusal. whoami and status print it.

import { ApiError } from '../../api/errors.ts'
import type { Kind } from '../../api/kind.ts'
import type { Json, Resource } from '../../api/object.ts'
import { OwnedAccessKey } from '../../kinds/owned-access-key.ts'
import { Team } from '../../kinds/team.ts'
import { reviewSelf } from '../access/review-self.ts'
import { expiryOf, expiryText, scopeText } from '../keys/key-summary.ts'
import { span } from '../print.ts'
import { refusedScope } from '../scope-denied.ts'
import type { Session } from '../session.ts'

export type Me = {
  readonly user: string
  /** Absent where the key's scope is too narrow to be told. */
  readonly groups?: readonly string[]
  readonly teams?: readonly { readonly name: string; readonly because: string }[]
  readonly key?: {
    readonly name: string
    readonly scope: string
    readonly expires: string
    readonly expiresAt?: string
  }
}

const ofTeam = 'this is a key of the team'
const everything = 'everything its owner may'
const unknown = 'too narrow to be told; its owner sees it in platform list accesskeys'

/** A key that may not ask who it is learns it from the refusal. */
export async function meOf(session: Session, now: number): Promise<Me> {
  try {
    return await reviewed(session, now)
  } catch (error) {
    const refused = refusedScope(error)
    if (!refused) throw error
    const { user, key: name, told } = refused
    const team = /^platform:team:(.+)$/.exec(user)?.[1]
    return {
      user,
      ...(team === undefined ? {} : { teams: [{ name: team, because: ofTeam }] }),
      key: { name, ...(told ? keyTold(told.scope, told.endsIn, now) : { scope: unknown, expires: unknown }) },
    }
  }
}

async function reviewed({ resources }: Session, now: number): Promise<Me> {
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
      because: username === `platform:team:${name}` ? ofTeam : becauseOf(await read(Team, name), username, groups),
    })),
  ])
  // A server that is older than this program tells no end, unless by the object.
  const facts = key && !extra[endsIn] ? factsOf(key, now) : toldOf(extra, now)
  return {
    user: username,
    groups,
    teams,
    ...(keyName === undefined ? {} : { key: { name: keyName, ...facts } }),
  }
}

const endsIn = 'authentication.platform.sh/key-ends-in'

/** What the server says beside who one is. It knows which secret of a key was sent; and not every key may read its own object. */
function toldOf(extra: { readonly [name: string]: readonly string[] }, now: number) {
  const [scope] = extra['authentication.platform.sh/scope'] ?? []
  const [left] = extra[endsIn] ?? []
  return keyTold(
    scope === undefined ? undefined : JSON.parse(scope),
    left === undefined ? undefined : Number(left),
    now,
  )
}

const keyTold = (scope: Json | undefined, endsIn: number | undefined, now: number) => ({
  scope: scopeText(scope) ?? everything,
  expires: endsIn === undefined ? 'never' : `in ${span(endsIn)}`,
  ...(endsIn === undefined ? {} : { expiresAt: new Date(now + endsIn * 1000).toISOString() }),
})

function factsOf(key: Resource, now: number) {
  const at = expiryOf(key)
  return {
    scope: scopeText(key.spec?.['scope']) ?? everything,
    expires: expiryText(key, now),
    ...(at === undefined ? {} : { expiresAt: new Date(at).toISOString() }),
  }
}

function becauseOf(team: Resource | undefined, user: string, groups: readonly string[]): string {
  const { users = [], groups: shared = [] } = (team?.spec ?? {}) as { users?: string[]; groups?: string[] }
  if (users.includes(user)) return 'listed by name'
  const group = shared.find(one => groups.includes(one))
  return group === undefined ? 'as the server says' : `through group ${group}`
}
