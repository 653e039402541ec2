// Credentials at the gate: who may make an access key or a token, make one stronger, or make it live longer (D14, D22, D25, D62).

import { forbidden, invalid, invalidValue } from '../api/errors.ts'
import type { Kind, Tools } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'
import type { GatedWrite } from '../api/power-gate.ts'
import { teamGroup, teamUidsOf, withTeamUids } from '../kinds/team-uids.ts'
import { checkLifetime, isLifetimeChanged, type Key, type KeyWrite } from './key-lifetime.ts'
import { checkTeamPower } from './team-escalation.ts'

const same = (one: unknown, other: unknown) => JSON.stringify(one ?? null) === JSON.stringify(other ?? null)
const refusal = ({ kind, next }: Pick<KeyWrite, 'kind' | 'next'>, why: string) =>
  forbidden(kind, next.metadata.name ?? '', why)

export async function checkCredential(write: GatedWrite): Promise<Resource> {
  return write.kind.stored ? checkKey(write) : checkToken(write)
}

/** A token acts as its caller, within the scope of their key (D32). */
function checkToken({ kind, next, tools }: GatedWrite): Resource {
  const asked = next.spec?.['scope'] as object | undefined
  if (asked && Object.keys(asked).length && !tools.isWithinScope(asked))
    throw forbidden(kind, '', 'the scope of a token is no wider than that of the key it is made with')
  if (!tools.caller.key || tools.caller.impersonator)
    throw forbidden(kind, '', 'a token is made with an access key, by its owner and not while impersonating')
  return next
}

async function checkKey({ kind, next: object, old: stored, tools }: GatedWrite): Promise<Resource> {
  const [next, old] = [object as Key, stored as Key | undefined]
  const target = { group: kind.group, resource: kind.plural, namespace: '' }
  const administers = (await tools.judge({ verb: '*', target })).allowed
  const isIssued = !old || Boolean(next.spec?.key) || next.status?.digest !== old.status?.digest
  const write: KeyWrite = { kind, next, old, tools, isIssued, administers }
  checkScope(write)
  checkItself(write)
  if (!administers) await checkOwn(write)
  const stronger = isStronger(write)
  if (stronger) await checkStrength(write)
  checkLifetime(write, stronger)
  await checkParent(write)
  return pinTeam(write)
}

/** Whether somebody can do more with a secret of this key than before, or for longer. */
function isStronger({ next, old, isIssued, tools }: KeyWrite): boolean {
  if (isIssued || !old) return true
  if (old.spec?.disabled && !next.spec?.disabled) return true
  return (
    added(next.spec?.groups, old.spec?.groups).length > 0 ||
    !tools.isNoWider(next.spec?.scope, old.spec?.scope) ||
    isLifetimeChanged(next, old)
  )
}

const added = (now: readonly string[] = [], before: readonly string[] = []) => {
  const known = new Set(before)
  return now.filter(one => !known.has(one))
}

async function checkStrength(write: KeyWrite): Promise<void> {
  const { next, old, tools, administers } = write
  const { spec = {} } = next
  // It would outlive the right to impersonate.
  if (tools.caller.impersonator !== undefined)
    throw refusal(write, 'no access key is created, rotated or extended while impersonating')
  if (administers) return
  // A member is in the group of the team. A key of the team also has its username, to which more may be bound (D16).
  if (spec.team && tools.caller.username !== teamGroup(spec.team))
    await checkTeamPower(write as unknown as GatedWrite, spec.team)
  if (added(spec.groups, old?.spec?.groups).length)
    throw refusal(write, 'spec.groups: extra groups need every verb on ownedaccesskeys')
  const foreign = added(spec.groups, tools.caller.groups)
  if (foreign.length)
    throw refusal(
      write,
      `the key acts with groups that user "${tools.caller.username}" is not in: ${foreign.map(one => JSON.stringify(one)).join(', ')}`,
    )
}

/** With a scoped key one may touch only keys whose scope, before and after, is no wider than one's own (D25). */
function checkScope(write: KeyWrite): void {
  const { next, old, tools } = write
  if (tools.isWithinScope(next.spec?.scope) && (!old || tools.isWithinScope(old.spec?.scope))) return
  throw refusal(write, 'its scope would be wider than that of the access key this request was made with')
}

const notByItself = ['scope', 'groups', 'ttl', 'ttlAfterLastActivity', 'disabled'] as const

/** A key does not change what bounds it; whoever found a bounded key would otherwise take it over from its owner (D22). */
function checkItself(write: KeyWrite): void {
  const { next, old, tools, isIssued } = write
  if (!old || !tools.caller.keyUid || tools.caller.keyUid !== old.metadata.uid) return
  const field = notByItself.find(one => !same(next.spec?.[one], old.spec?.[one]))
  if (field) throw refusal(write, `a key cannot change its own ${field}`)
  if (isIssued && (old.spec?.scope !== undefined || old.spec?.ttl))
    throw refusal(write, 'a key that has a scope or a ttl cannot rotate itself')
}

const serverOnly = ['identity', 'identityRefresh', 'oidcLogin', 'oidcProvider', 'parent'] as const
const ownTypes = ['User', 'Other']

/** Without administering keys: for oneself, or for a team one may update, and nothing that only the server knows. */
async function checkOwn(write: KeyWrite): Promise<void> {
  const { next, old, tools } = write
  const { spec = {} } = next
  if (!(await isOwn(spec, tools)))
    throw refusal(
      write,
      'a key for another user or a free subject needs every verb on ownedaccesskeys; for a team, permission to update the team',
    )
  if (spec.key) throw refusal(write, 'spec.key: only administrators of ownedaccesskeys bring a key of their own')
  const read = (key: Key | undefined, field: string) =>
    (key?.spec as { readonly [name: string]: unknown } | undefined)?.[field]
  // Naming a value that is never shown would tell from the answer whether it was guessed (D5).
  const field = serverOnly.find(
    one => !same(read(next, one), read(old, one)) || tools.written.some(path => path.startsWith(`spec.${one}.`)),
  )
  if (field) throw refusal(write, `spec.${field} is written by the server or an administrator`)
  if (!ownTypes.includes(spec.type ?? 'User') && !same(spec.type, old?.spec?.type))
    throw refusal(
      write,
      `spec.type: ${spec.type} is written by the server or an administrator; User and Other are yours to choose`,
    )
}

async function isOwn(spec: NonNullable<Key['spec']>, { caller, judge }: Tools): Promise<boolean> {
  if (spec.user) return caller.identity === 'User' && spec.user === caller.username
  if (spec.subject) return caller.identity === 'Subject' && spec.subject === caller.username
  if (caller.identity === 'Team' && caller.username === teamGroup(spec.team ?? '')) return true
  const target = { group: 'management.platform.sh', resource: 'teams', namespace: '', name: spec.team ?? '' }
  return (await judge({ verb: 'update', target })).allowed
}

async function checkParent({ kind, next, old, tools }: KeyWrite): Promise<void> {
  const parent = next.spec?.parent
  if (!parent || parent === old?.spec?.parent) return
  const found = (await tools.read(kind, { namespace: '', name: parent })) as Key | undefined
  const owner = (key: Key | undefined) => [key?.spec?.user, key?.spec?.team, key?.spec?.subject]
  if (!found || !same(owner(found), owner(next)))
    throw invalid(kind, next.metadata.name ?? '', [
      invalidValue('spec.parent', parent, 'must name an access key of the same owner'),
    ])
}

/** The key of a team is that team's for ever; a new secret is one of the team that has the name now (D61). */
function pinTeam({ kind, next, old, tools, isIssued }: KeyWrite): Resource {
  const team = next.spec?.team
  const object = next as Resource
  if (!team || (old && !isIssued)) return withTeamUids(object, old ? teamUidsOf(old) : {})
  const uid = tools.teamUid(team)
  if (uid !== undefined) return withTeamUids(object, { [team]: uid })
  throw invalid(kind, next.metadata.name ?? '', [invalidValue('spec.team', team, 'there is no such team')])
}

export function releaseKey(kind: Kind, old: Resource, tools: Tools): void {
  if (!tools.isWithinScope((old as Key).spec?.scope))
    throw forbidden(
      kind,
      old.metadata.name ?? '',
      'its scope is wider than that of the access key this request was made with',
    )
}
