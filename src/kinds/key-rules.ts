// Who may write which access key (D14). Binds every write: create, replace, patch, apply and rotation.

import { forbidden, invalid, invalidValue } from '../api/errors.ts'
import type { Kind, Tools } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'
import { checkTeamPower } from './team-power.ts'

type Spec = {
  readonly user?: string | undefined
  readonly team?: string | undefined
  readonly subject?: string | undefined
  readonly groups?: readonly string[] | undefined
  readonly scope?: unknown
  readonly key?: string | undefined
  readonly ttl?: number | undefined
  readonly ttlAfterLastActivity?: boolean | undefined
  readonly disabled?: boolean | undefined
  readonly type?: string | undefined
  readonly parent?: string | undefined
}
type Key = Resource<Spec, unknown>

const same = (one: unknown, other: unknown) => JSON.stringify(one ?? null) === JSON.stringify(other ?? null)
const serverOnly = ['identity', 'identityRefresh', 'oidcLogin', 'oidcProvider', 'parent'] as const
const ownTypes = ['User', 'Other']
const notByItself = ['scope', 'groups', 'ttl', 'ttlAfterLastActivity', 'disabled'] as const

export async function checkKeyWrite(kind: Kind, next: Key, old: Key | undefined, tools: Tools): Promise<void> {
  const name = next.metadata.name ?? ''
  const refuse = (why: string) => forbidden(kind, name, why)
  const administers = (
    await tools.judge({ verb: '*', target: { group: kind.group, resource: kind.plural, namespace: '' } })
  ).allowed
  if (!administers) await checkOwn(kind, next, old, tools)
  checkScope(next, old, tools, refuse)
  checkTtl(kind, next, tools)
  if (old && tools.caller.key === name) {
    const field = notByItself.find(one => !same(next.spec?.[one], old.spec?.[one]))
    if (field) throw refuse(`a key cannot change its own ${field}`)
    if (next.spec?.key) refuseSelfRotation(kind, old, tools)
  }
  await checkParent(kind, next, old, tools)
}

/** Whoever found a bounded key would otherwise take it over from its owner (D22). */
export function refuseSelfRotation(kind: Kind, { metadata: { name = '' }, spec }: Key, { caller }: Tools): void {
  if (caller.key === name && (spec?.scope !== undefined || spec?.ttl))
    throw forbidden(kind, name, 'a key that has a scope or a ttl cannot rotate itself')
}

/** Without administering the kind: for oneself, or for a team one may update, and nothing that only the server knows. */
async function checkOwn(kind: Kind, next: Key, old: Key | undefined, tools: Tools): Promise<void> {
  const { spec = {} } = next
  const refuse = (why: string) => forbidden(kind, next.metadata.name ?? '', why)
  if (!(await isOwn(spec, tools)))
    throw refuse(
      'a key for another user or a free subject needs every verb on ownedaccesskeys; for a team, permission to update the team',
    )
  // Whoever has a key of a team acts as it. Who is in it does so anyway, within the scope that is looked at next.
  if (spec.team && !tools.caller.groups.includes(`platform:team:${spec.team}`))
    await checkTeamPower(kind, next, spec.team, tools)
  if (spec.groups?.length && !same(spec.groups, old?.spec?.groups))
    throw refuse('spec.groups: extra groups need every verb on ownedaccesskeys')
  const read = (key: Key | undefined, field: string) =>
    (key?.spec as { readonly [name: string]: unknown } | undefined)?.[field]
  // Whoever names what is never shown would learn from the answer whether they guessed it (D5).
  const field = serverOnly.find(
    one => !same(read(next, one), read(old, one)) || tools.written.some(path => path.startsWith(`spec.${one}.`)),
  )
  if (field) throw refuse(`spec.${field} is written by the server or an administrator`)
  if (!ownTypes.includes(spec.type ?? 'User') && !same(spec.type, old?.spec?.type))
    throw refuse(
      `spec.type: ${spec.type} is written by the server or an administrator; User and Other are yours to choose`,
    )
}

async function isOwn(spec: Spec, { caller, judge }: Tools): Promise<boolean> {
  if (spec.user) return caller.identity === 'User' && spec.user === caller.username
  if (spec.subject) return caller.identity === 'Subject' && spec.subject === caller.username
  if (caller.identity === 'Team' && caller.username === `platform:team:${spec.team}`) return true
  return (
    await judge({
      verb: 'update',
      target: { group: 'management.platform.sh', resource: 'teams', namespace: '', name: spec.team ?? '' },
    })
  ).allowed
}

/** With a scoped key one may touch only keys whose scope, before and after, is no wider than one's own. */
function checkScope(next: Key, old: Key | undefined, tools: Tools, refuse: (why: string) => Error): void {
  if (tools.isWithinScope(next.spec?.scope) && (!old || tools.isWithinScope(old.spec?.scope))) return
  throw refuse('its scope would be wider than that of the access key this request was made with')
}

/** Where keys may not live for ever, one has to say how long; the server's own first key is exempt, its end is not (D18). */
function checkTtl(kind: Kind, next: Key, { maxKeyTTL, caller }: Tools): void {
  const ttl = next.spec?.ttl
  if (maxKeyTTL === undefined || caller.groups.includes('system:masters') || (ttl && ttl <= maxKeyTTL)) return
  throw invalid(kind, next.metadata.name ?? '', [
    invalidValue('spec.ttl', ttl ?? 0, `must be from 1 to ${maxKeyTTL}, the most seconds an access key may live here`),
  ])
}

export async function checkKeyRelease(kind: Kind, old: Key, tools: Tools): Promise<void> {
  if (!tools.isWithinScope(old.spec?.scope))
    throw forbidden(
      kind,
      old.metadata.name ?? '',
      'its scope is wider than that of the access key this request was made with',
    )
}

async function checkParent(kind: Kind, next: Key, old: Key | undefined, tools: Tools): Promise<void> {
  const parent = next.spec?.parent
  if (!parent || parent === old?.spec?.parent) return
  const found = (await tools.read(kind, { namespace: '', name: parent })) as Key | undefined
  const owner = (key: Key | undefined) => [key?.spec?.user, key?.spec?.team, key?.spec?.subject]
  if (!found || !same(owner(found), owner(next)))
    throw invalid(kind, next.metadata.name ?? '', [
      invalidValue('spec.parent', parent, 'must name an access key of the same owner'),
    ])
}
