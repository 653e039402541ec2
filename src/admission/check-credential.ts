// Checks permission to create, strengthen or extend access keys and tokens (D14, D22, D25, D62).

import { isDeepStrictEqual } from 'node:util'
import { type Caller, isMachine } from '../api/caller.ts'
import { forbidden, invalid, invalidValue } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'
import type { GatedWrite } from '../api/power-gate.ts'
import { isAgentSubject } from '../kinds/cluster-desired.ts'
import { teamGroup, teamUidsOf, withTeamUids } from '../kinds/team-uids.ts'
import { checkLifetime, isLifetimeChanged, type Key, type KeyWrite, type LifetimeDependencies } from './key-lifetime.ts'
import { checkExchangedKey, checkLoginKey, checkSignIn, type LoginDependencies, withLogin } from './login-keys.ts'
import { checkTeamPower, type TeamDependencies } from './team-escalation.ts'

const same = (one: unknown, other: unknown) => isDeepStrictEqual(one ?? null, other ?? null)
const refusal = ({ kind, next }: Pick<KeyWrite, 'kind' | 'next'>, why: string) =>
  forbidden(kind, next.metadata.name ?? '', why)

type KeyDependencies = TeamDependencies &
  LifetimeDependencies &
  LoginDependencies & {
    /** The uid of a team that exists and is not being deleted. */
    readonly teamUid: (name: string) => string | undefined
    /** The stored access key with this name. */
    readonly keyNamed: (name: string) => Resource | undefined
  }

export async function checkCredential(dependencies: KeyDependencies, write: GatedWrite): Promise<Resource> {
  return write.kind.stored ? checkKey(dependencies, write) : checkToken(dependencies, write)
}

type Scopes = Pick<KeyDependencies, 'isNoWider'>

/** A token acts as its caller, within the scope of their key (D32). */
function checkToken({ isNoWider }: Scopes, { kind, next, request: { caller } }: GatedWrite): Resource {
  const requested = next.spec?.['scope'] as object | undefined
  if (requested && Object.keys(requested).length && !isNoWider(requested, caller.scope))
    throw forbidden(kind, '', 'the scope of a token must not be wider than the scope of the key that creates it')
  // It would outlive the cluster, whose deletion ends the keys of its agents without revoking tokens.
  if (isAgentSubject(caller.username))
    throw forbidden(kind, '', 'the agent of a connected cluster cannot create tokens')
  if (!(caller.key || caller.issuer) || caller.impersonator)
    throw forbidden(kind, '', 'creating a token requires an access key or a token of an issuer, without impersonation')
  return next
}

async function checkKey(
  dependencies: KeyDependencies,
  { kind, next: object, old: stored, request }: GatedWrite,
): Promise<Resource> {
  const [next, old] = [object as Key, stored as Key | undefined]
  const target = { group: kind.group, resource: kind.plural, namespace: '' }
  const administers = dependencies.authorize(request.caller, { verb: '*', target }).allowed
  const isIssued = !old || Boolean(next.spec?.key) || next.status?.digest !== old.status?.digest
  const write: KeyWrite = { kind, next, old, request, isIssued, administers }
  // Such a token is issued for one job, and an access key would outlive it (D67).
  if (isMachine(request.caller)) throw refusal(write, `access keys cannot be created, changed or rotated ${byMachine}`)
  // The checks are about this team, and another one may have its name when they end.
  const uid = dependencies.teamUid(next.spec?.team ?? '')
  checkScope(dependencies, write)
  checkLoginKey(write)
  checkExchangedKey(write)
  checkItself(write)
  if (!administers) checkOwn(dependencies, write)
  const stronger = isStronger(dependencies, write)
  if (stronger) await checkStrength(dependencies, write)
  checkLifetime(dependencies, write, stronger)
  checkParent(dependencies, write)
  return withLogin(dependencies, write, pinTeam(write, uid))
}

/** Whether a secret of this key gives more permissions, or a longer lifetime, than before. */
function isStronger({ isNoWider }: Scopes, { next, old, isIssued }: KeyWrite): boolean {
  if (isIssued || !old) return true
  if (old.spec?.disabled && !next.spec?.disabled) return true
  return (
    added(next.spec?.groups, old.spec?.groups).length > 0 ||
    !isNoWider(next.spec?.scope, old.spec?.scope) ||
    isLifetimeChanged(next, old)
  )
}

const added = (now: readonly string[] = [], before: readonly string[] = []) => {
  const known = new Set(before)
  return now.filter(one => !known.has(one))
}

async function checkStrength(dependencies: TeamDependencies & LoginDependencies, write: KeyWrite): Promise<void> {
  const { next, old, request, administers } = write
  const { caller } = request
  const { spec = {} } = next
  // The key would outlive the permission to impersonate.
  if (caller.impersonator !== undefined)
    throw refusal(write, 'access keys cannot be created, rotated or extended while impersonating')
  if (administers) return
  checkSignIn(dependencies, write)
  // A member has the group of the team. A key of the team also has its username, which may have more bindings (D16).
  if (spec.team && caller.username !== teamGroup(spec.team))
    await checkTeamPower(dependencies, write as unknown as GatedWrite, spec.team)
  if (added(spec.groups, old?.spec?.groups).length)
    throw refusal(write, 'spec.groups: extra groups require every verb on ownedaccesskeys')
  const foreign = added(spec.groups, caller.groups)
  if (foreign.length)
    throw refusal(
      write,
      `the key acts with groups that user "${caller.username}" is not in: ${foreign.map(one => JSON.stringify(one)).join(', ')}`,
    )
}

/** A scoped key may change only keys whose scope, before and after, is at most as wide as its own (D25). */
function checkScope({ isNoWider }: Scopes, write: KeyWrite): void {
  const { next, old, request } = write
  const isWithin = (key: Key) => isNoWider(key.spec?.scope, request.caller.scope)
  if (isWithin(next) && (!old || isWithin(old))) return
  throw refusal(write, 'its scope would be wider than the scope of the access key of this request')
}

const notChangeableByKey = ['scope', 'groups', 'ttl', 'ttlAfterLastActivity', 'disabled'] as const

/** A key cannot lift its own limits. Otherwise somebody with a stolen limited key could take it over (D22). */
function checkItself(write: KeyWrite): void {
  const { next, old, request, isIssued } = write
  const { keyUid } = request.caller
  if (!old || !keyUid || keyUid !== old.metadata.uid) return
  const field = notChangeableByKey.find(one => !same(next.spec?.[one], old.spec?.[one]))
  if (field) throw refusal(write, `a key cannot change its own ${field}`)
  if (isIssued && (old.spec?.scope !== undefined || old.spec?.ttl))
    throw refusal(write, 'a key that has a scope or a ttl cannot rotate itself')
}

const serverOnly = ['identity', 'identityRefresh', 'oidcLogin', 'oidcProvider', 'parent'] as const
const ownTypes = ['User', 'Other']

/**
 * Without permission to administer keys, callers create keys for themselves or for teams they may update, and cannot
 * set fields of the server.
 */
function checkOwn(dependencies: Pick<KeyDependencies, 'authorize'>, write: KeyWrite): void {
  const { next, old, request } = write
  const { spec = {} } = next
  if (!isOwn(dependencies, spec, request.caller))
    throw refusal(
      write,
      'a key for another user or subject requires every verb on ownedaccesskeys; a key for a team requires permission to update the team',
    )
  if (spec.key) throw refusal(write, 'spec.key: only administrators of ownedaccesskeys can choose the key')
  const read = (key: Key | undefined, field: string) =>
    (key?.spec as { readonly [name: string]: unknown } | undefined)?.[field]
  // Otherwise the response would reveal whether a guess of a hidden value was right (D5).
  const field = serverOnly.find(
    one => !same(read(next, one), read(old, one)) || request.written.some(path => path.startsWith(`spec.${one}.`)),
  )
  if (field) throw refusal(write, `spec.${field} can only be set by the server or an administrator`)
  if (!ownTypes.includes(spec.type ?? 'User') && !same(spec.type, old?.spec?.type))
    throw refusal(write, `spec.type: ${spec.type} can only be set by the server or an administrator; use User or Other`)
}

function isOwn(
  { authorize }: Pick<KeyDependencies, 'authorize'>,
  spec: NonNullable<Key['spec']>,
  caller: Caller,
): boolean {
  if (spec.user) return caller.identity === 'User' && spec.user === caller.username
  if (spec.subject && isAgentSubject(spec.subject)) return false // only administrators connect clusters
  if (spec.subject) return caller.identity === 'Subject' && spec.subject === caller.username
  if (caller.identity === 'Team' && caller.username === teamGroup(spec.team ?? '')) return true
  const target = { group: 'management.platform.sh', resource: 'teams', namespace: '', name: spec.team ?? '' }
  return authorize(caller, { verb: 'update', target }).allowed
}

function checkParent({ keyNamed }: Pick<KeyDependencies, 'keyNamed'>, { kind, next, old }: KeyWrite): void {
  const parent = next.spec?.parent
  if (!parent || parent === old?.spec?.parent) return
  const found = keyNamed(parent) as Key | undefined
  const owner = (key: Key | undefined) => [key?.spec?.user, key?.spec?.team, key?.spec?.subject]
  if (!found || !same(owner(found), owner(next)))
    throw invalid(kind, next.metadata.name ?? '', [
      invalidValue('spec.parent', parent, 'must be an access key of the same owner'),
    ])
}

/** A key stays with its team. A new secret belongs to the current team with that name (D61). */
function pinTeam({ kind, next, old, isIssued }: KeyWrite, uid: string | undefined): Resource {
  const team = next.spec?.team
  const object = next as Resource
  if (!team || (old && !isIssued)) return withTeamUids(object, old ? teamUidsOf(old) : {})
  if (uid !== undefined) return withTeamUids(object, { [team]: uid })
  throw invalid(kind, next.metadata.name ?? '', [invalidValue('spec.team', team, 'team not found')])
}

const byMachine = 'with a token of an external issuer, or with a key that was exchanged for one; use another access key'

/** A machine may delete only its own key. */
export function checkKeyDelete({ isNoWider }: Scopes, kind: Kind, old: Resource, caller: Caller): void {
  if (isMachine(caller) && (caller.keyUid === undefined || caller.keyUid !== old.metadata.uid))
    throw forbidden(kind, old.metadata.name ?? '', `access keys cannot be deleted ${byMachine}`)
  if (!isNoWider((old as Key).spec?.scope, caller.scope))
    throw forbidden(
      kind,
      old.metadata.name ?? '',
      'its scope is wider than the scope of the access key that you authenticated with',
    )
}
